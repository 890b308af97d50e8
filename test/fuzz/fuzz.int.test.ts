import { findNothing } from './find-nothing.ts';

/** The first of those of fuzz.long.test.ts. */
findNothing(5000);
