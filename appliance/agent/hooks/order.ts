import { AppError } from '#shared/errors/app-error.ts';
import type { StepFields } from './fields.ts';

export interface OrderedStep {
  readonly label: string;
  /** `cluster/10-users.yaml` */
  readonly file: string;
  readonly fields: StepFields;
}

interface StageOfDocument {
  readonly file: string;
  readonly name: string;
  readonly steps: readonly StepFields[];
}

interface Node extends OrderedStep {
  /** `<document>.<step>`, which `after` refers to. */
  readonly id: string;
  readonly needs: Set<number>;
}

/**
 * Orders the steps of one stage as yip does. A step follows its predecessor in its document and the
 * previous documents. A step with `after` follows the named steps instead of its predecessor, and
 * later documents do not wait for it.
 * @throws AppError HOOK_FAILED for an `after` without its step, or for a cycle
 */
export function orderSteps(documents: readonly StageOfDocument[]): OrderedStep[] {
  const nodes = connect(documents);
  const ordered: OrderedStep[] = [];
  const done = new Set<number>();
  while (done.size < nodes.length) {
    const next = nodes.findIndex(
      (node, index) => !done.has(index) && [...node.needs].every((need) => done.has(need)),
    );
    const node = nodes[next];
    if (!node) {
      const waiting = nodes.filter((_, index) => !done.has(index)).map(({ id }) => id);
      throw new AppError('HOOK_FAILED', `steps depend on each other: ${waiting.join(', ')}`);
    }
    done.add(next);
    ordered.push(node);
  }
  return ordered;
}

function connect(documents: readonly StageOfDocument[]): Node[] {
  const nodes: Node[] = [];
  let previous: number[] = [];
  for (const document of documents) {
    if (document.steps.length === 0) continue;
    const first = nodes.length;
    nodes.push(...nameSteps(document));
    const own = document.steps.map((_, index) => first + index);
    for (const index of own) {
      const node = nodes[index];
      for (const earlier of previous) node?.needs.add(earlier);
      if (index > first && node?.fields.after.length === 0) node.needs.add(index - 1);
    }
    previous = own.filter((index) => nodes[index]?.fields.after.length === 0);
  }
  for (const node of nodes) {
    for (const { name } of node.fields.after)
      for (const index of findSteps(nodes, name, node)) node.needs.add(index);
  }
  return nodes;
}

function nameSteps({ file, name, steps }: StageOfDocument): Node[] {
  const isAmbiguous = new Set(steps.map((step) => step.name)).size < steps.length;
  return steps.map((fields, index) => {
    const step = fields.name === '' ? String(index) : fields.name;
    const suffix = isAmbiguous && fields.name !== '' ? `.${index}` : '';
    return {
      id: `${name}.${step}${suffix}`,
      label: fields.name === '' ? `step ${index + 1}` : `step '${fields.name}'`,
      file,
      fields,
      needs: new Set<number>(),
    };
  });
}

function findSteps(nodes: readonly Node[], id: string, by: Node): number[] {
  const found = nodes.flatMap((node, index) => (node.id === id ? [index] : []));
  if (found.length > 0) return found;
  throw new AppError(
    'HOOK_FAILED',
    `${by.label} of ${by.file} must run after '${id}', but this stage has no such step`,
    { hint: `The steps are ${nodes.map((node) => node.id).join(', ')}.` },
  );
}
