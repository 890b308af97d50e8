/** Ganeti's initial node group. All nodes belong to it. */
export const GROUP = 'default';

/** Ganeti's name for a group that gets instances before groups of `last_resort`. */
export const ALLOCATION_POLICY = 'preferred';

/** Ganeti's defaults. htools reads `exclusive_storage` and `spindle_count` of every node. */
export const NODE_PARAMETERS = {
  cpu_speed: 1,
  exclusive_storage: false,
  oob_program: '',
  ovs: false,
  ovs_link: '',
  ovs_name: 'switch1',
  spindle_count: 1,
  ssh_port: 22,
} as const;
