import type {
  RunListEnvironment,
  RunListName,
  ViewLifecycle,
  ViewScript,
} from '#shared/contract/lifecycle.ts';
import { RUN_LISTS } from '#shared/contract/lifecycle.ts';
import { reveal } from '#shared/secret/secret.ts';
import { bytesLeaf, jsonLeaf, lostLeaf, textLeaf } from '../view/leaf.ts';
import type { Leaf } from '../view/leaf.ts';
import type { ServedView } from '../view/served-view.ts';
import { quoteForShell } from './shell-word.ts';

/**
 * What the guest's agent works with: what the host wants of it, the scripts, their variables and
 * their files. Nothing where the instance has no run lists.
 */
export function runListLeaves(view: ServedView): readonly (readonly [string, Leaf])[] {
  const { lifecycle } = view;
  if (!lifecycle) return [];
  return [
    ['lifecycle.json', jsonLeaf(lifecycle.status)],
    ...RUN_LISTS.flatMap((list) => listLeaves(view, lifecycle, list)),
    ...lifecycle.attachments.map(
      ({ name, content }) => [`attachments/${name}`, scriptLeaf(content)] as const,
    ),
  ];
}

function listLeaves(
  view: ServedView,
  lifecycle: ViewLifecycle,
  list: RunListName,
): readonly (readonly [string, Leaf])[] {
  const scripts = lifecycle.lists[list];
  if (scripts.length === 0) return [];
  return [
    ...scripts.map(
      ({ name, content }) => [`run-lists/${list}/${name}`, scriptLeaf(content)] as const,
    ),
    [`run-lists/${list}.env`, environmentLeaf(view, lifecycle, list)],
  ];
}

function scriptLeaf(content: string): Leaf {
  return bytesLeaf(Buffer.from(content, 'base64'), { isSecretBearing: true });
}

/**
 * Lines for a shell to read, which sets `GNT_SCRIPT` to the name of the script before. Where no
 * script has variables of its own, they are assignments and nothing else.
 */
function environmentLeaf(view: ServedView, lifecycle: ViewLifecycle, list: RunListName): Leaf {
  const lost = new Set<string>();
  const scripts = lifecycle.lists[list];
  const lines = (environment: RunListEnvironment): readonly string[] =>
    Object.entries(environment).map(([name, value]) => {
      if ('text' in value) return `${name}=${quoteForShell(value.text)}`;
      const known = view.osParameters.get(value.parameter)?.value ?? null;
      if (known === null) lost.add(value.parameter);
      return `${name}=${quoteForShell(known === null ? '' : reveal(known))}`;
    });
  const environments = scripts.map((script) => environmentOf(script, lifecycle, list));
  const isCommon = environments.every((environment) => environment === lifecycle.env);
  const text = isCommon
    ? lines(lifecycle.env)
    : [
        'case "${GNT_SCRIPT-}" in',
        ...environments.flatMap((environment, index) => [
          `${quoteForShell(scripts[index]?.name ?? '')})`,
          ...lines(environment),
          ';;',
        ]),
        'esac',
      ];
  if (lost.size > 0) return lostLeaf([...lost]);
  return textLeaf(text.map((line) => `${line}\n`).join(''), { isSecretBearing: true });
}

function environmentOf(
  { name, env }: ViewScript,
  lifecycle: ViewLifecycle,
  list: RunListName,
): RunListEnvironment {
  const own = env ?? lifecycle.env;
  const { next } = lifecycle.status;
  const isWanted = list === 'operational' && next?.do === 'run' && next.script === name;
  return isWanted ? { ...own, ...lifecycle.commandEnv } : own;
}
