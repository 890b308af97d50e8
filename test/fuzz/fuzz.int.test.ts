import { findNothing } from './find-nothing.ts';

/** The first inputs of fuzz.long.test.ts. */
findNothing(5000);
