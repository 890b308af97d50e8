/** Hidden command that prints the candidates for the last word of a command line. */
export const COMPLETION_WORDS = 'completion-words';
