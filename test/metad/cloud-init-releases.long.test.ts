import { NEWER_RELEASES } from '../lab/debian-releases.ts';
import { testCloudInit } from './support/cloud-init-suite.ts';

for (const release of NEWER_RELEASES) testCloudInit(release);
