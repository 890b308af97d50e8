import { ownValue } from '#shared/json/own-value.ts';
import type { CompletionWord } from './complete.ts';
import type { KeyedOption } from './command.ts';

/**
 * Completes the value of an option such as `--net 0:mode=us`: unused keys, and the words of a key.
 * Pure.
 * @param prefix text before the value in the same word (`--net=`)
 */
export function completeKeys(
  { keys, syntax }: KeyedOption,
  value: string,
  prefix: string,
): readonly CompletionWord[] {
  const target = /^(N|add):/.exec(syntax)?.[1];
  const colon = value.indexOf(':');
  if (target !== undefined && colon === -1) {
    const start = target === 'N' ? '0:' : 'add:';
    return start.startsWith(value) ? [{ word: `${prefix}${start}`, description: '' }] : [];
  }
  const begin = Math.max(value.lastIndexOf(','), target === undefined ? -1 : colon) + 1;
  const [head, item] = [value.slice(0, begin), value.slice(begin)];
  const [key = '', word] = item.split('=', 2);
  const offered =
    word === undefined
      ? keysLeft(keys, head)
      : wordsOf(ownValue(keys, key)?.value ?? '').map((each) => ({
          word: `${key}=${each}`,
          description: '',
        }));
  return offered
    .filter((each) => each.word.startsWith(item))
    .map((each) => ({ ...each, word: `${prefix}${head}${each.word}` }));
}

function keysLeft(keys: KeyedOption['keys'], head: string): readonly CompletionWord[] {
  const given = head.split(/[,:]/).map((item) => item.split('=', 1)[0]);
  return Object.entries(keys)
    .filter(([key]) => !given.includes(key))
    .map(([key, { value, help }]) => ({
      word: value === '' ? key : `${key}=`,
      description: help,
    }));
}

/** Returns the words of a syntax: `bridged|user` has two, `1..255` and `PATH` have none. */
function wordsOf(value: string): readonly string[] {
  return value.split('|').filter((word) => /^[a-z][a-z-]*$/.test(word));
}
