/** The command that tells what can stand in the place of the last word of a command line. */
export const COMPLETION_WORDS = 'completion-words';
