import fc from 'fast-check';

const seed = process.env['GNT_TEST_SEED'];
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) });

/**
 * fast-check, whose failures tell their seed: `GNT_TEST_SEED=N node --test FILE` generates the same
 * again.
 */
export { fc };
