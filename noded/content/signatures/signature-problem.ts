/** Why a signature does not count, as a clause: `it is of the key 1234, which was not named`. */
export class SignatureProblem extends Error {}
