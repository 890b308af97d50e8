import { findNothing } from './find-nothing.ts';

/** `npm run fuzz` tries two hundred times as many, other ones each time. */
findNothing(50_000);
