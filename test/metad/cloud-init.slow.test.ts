import { testCloudInit } from './support/cloud-init-suite.ts';

// Newer releases, whose trees take minutes to make, are in cloud-init-releases.long.test.ts.
testCloudInit('bookworm');
