/** Help of `gnt-cluster join` and its alias `gnt-node add`. */
export const JOIN_DESCRIPTION =
  'Run this while gnt-noded is stopped on this node. The node must have no instances; its embedded store is set aside. A token that is incomplete, altered, expired, used or of another cluster is refused, and so is a host whose clock differs by more than a minute. A refusal changes nothing.';
