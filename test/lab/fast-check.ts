import fc from 'fast-check';

const seed = process.env['GNT_TEST_SEED'];
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) });

/**
 * fast-check with reported seeds: `GNT_TEST_SEED=N node --test FILE` generates the same input
 * again.
 */
export { fc };
