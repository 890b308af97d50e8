import { findNothing } from './find-nothing.ts';

/** `npm run fuzz` tries two hundred times as many, with another seed each time. */
findNothing(50_000);
