/** The reason why a signature is not accepted, as a clause: `it signs other content`. */
export class SignatureProblem extends Error {}
