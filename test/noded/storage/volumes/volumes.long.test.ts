import { after } from 'node:test';
import { makeLoopLab } from './loop-lab.ts';
import { testVolumes } from './volume-suite.ts';

const lab = await makeLoopLab();
after(() => lab[Symbol.asyncDispose]());
testVolumes(lab);
