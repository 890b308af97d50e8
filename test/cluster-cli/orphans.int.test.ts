import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runInProcess } from './support/run-in-process.ts';

test('list shows machines that run without a record, with what is known of them', async (t) => {
  const daemon = await startDaemonStandIn();
  t.after(() => daemon.close());
  const gnt = (...args: string[]) => runInProcess('gnt-instance', args, { root: daemon.root });
  const orphan = {
    name: 'web3',
    uuid: 'f6a7c1f6-7f0f-4c1e-9df6-3a5a6fd1a001',
    pid: 4711,
    tap: null,
  };
  daemon.orphans.push({ ...orphan, node: 'node2' });
  const fields = 'name,pnode,status,oper_state,pid,uuid,os,be/memory,ready';
  const list = await gnt('list', '--no-headers', '--separator=|', '-o', fields, 'web3');
  assert.equal(list.stdout, `web3|node2|ERROR_orphan|Y|4711|${orphan.uuid}|-|-|-\n`);
  const json = await gnt('list', '--json', '-F', 'status == "ERROR_orphan"');
  assert.deepEqual(JSON.parse(json.stdout), [{ ...orphan, node: 'node2', status: 'ERROR_orphan' }]);
});
