import { findNothing } from './find-nothing.ts';

/** `npm run fuzz` tries a hundred times as many, other ones each time. */
findNothing(100_000);
