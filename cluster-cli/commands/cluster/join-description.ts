/** Help of `gnt-cluster join` and `gnt-node add`, which are the same. */
export const JOIN_DESCRIPTION =
  'Before the first start of gnt-noded on this root. A token that is cut short, altered, expired, used or of another cluster is refused, and so is a host whose clock is more than a minute off; nothing is changed then.';
