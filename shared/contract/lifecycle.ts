import { z } from 'zod';
import { MIB } from '../units/bytes.ts';
import { boundedText, MAX_TABLE_BYTES, sizeOfTexts } from './bounded-texts.ts';
import { base64, fileName, osParameterName, uuid } from './primitives.ts';

/**
 * Run lists: scripts that a guest runs when it has booted, on demand, and before it goes down; and
 * how it gets on with them. The words are RightLink 10's.
 */

export const RUN_LISTS = ['boot', 'operational', 'decommission'] as const;
export const runListName = z.enum(RUN_LISTS);
export type RunListName = z.infer<typeof runListName>;

/** Scripts of all lists of an instance, those of its cluster and its OS definition included. */
export const MAX_RUN_LIST_SCRIPTS = 64;
/** Bytes of one script, or of one attachment. */
export const MAX_RUN_LIST_SCRIPT_BYTES = MIB;
/** Bytes of all scripts and attachments of an instance. */
export const MAX_RUN_LISTS_BYTES = 4 * MIB;
const MAX_SCRIPT_BASE64 = 1_400_000;
export const MAX_INPUTS = 256;
/** Possible values of one input. */
const MAX_POSSIBLE_VALUES = 256;

/**
 * Seconds after the limit of the decommission list, at which the agent ends its scripts, until the
 * guest's service manager ends the agent itself (metad/guest/agent.sh and enable.sh).
 */
export const AGENT_STOP_GRACE_S = 60;
/**
 * Seconds after that limit until the host cuts the power: the guest's system has time to end its
 * services (systemd: 90 s each) and to unmount.
 */
export const POWER_CUT_GRACE_S = 300;

/** Events in one POST of lifecycle/events, and bytes of it. */
export const MAX_LIFECYCLE_EVENTS = 256;
export const MAX_LIFECYCLE_EVENTS_BYTES = 256 * 1024;
/** Bytes of one POST of lifecycle/output. */
export const MAX_LIFECYCLE_OUTPUT_BYTES = 64 * 1024;
/** Bytes of what one script prints that are kept; the rest is counted. */
export const MAX_ENTRY_OUTPUT_BYTES = 4 * MIB;

/** Characters of one piece of output that metad tells; a line of the event stream holds it. */
export const MAX_OUTPUT_TEXT_LENGTH = 8192;

/** The name of a file in a folder of attachments; it stays in that folder. */
export const attachmentName = z
  .string()
  .max(255)
  .regex(/^[A-Za-z0-9_+][A-Za-z0-9_.+ -]*$/, 'not an attachment name');
/** A variable's name as every shell takes it. */
export const inputName = z
  .string()
  .max(128)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'not an input name');
const noNul = boundedText.refine(
  (text) => !text.includes('\0'),
  'contains a NUL character, which an environment variable cannot hold',
);

/** What an input is given: the text, the value of an OS parameter, or nothing at all. */
export const inputValue = z.discriminatedUnion('from', [
  z.strictObject({ from: z.literal('text'), text: noNul }),
  /** A private or secret OS parameter; a value that is lost is lost for the script, too. */
  z.strictObject({ from: z.literal('cred'), name: osParameterName }),
  /** The variable is not set. */
  z.strictObject({ from: z.literal('ignore') }),
]);
export type InputValue = z.infer<typeof inputValue>;
export const inputValues = z
  .record(inputName, inputValue)
  .refine((inputs) => Object.keys(inputs).length <= MAX_INPUTS, `more than ${MAX_INPUTS} inputs`)
  .refine((inputs) => sizeOfTexts(textsOf(inputs)) <= MAX_TABLE_BYTES, {
    error: `names and values are larger than ${MAX_TABLE_BYTES} bytes in total`,
  });
export type InputValues = z.infer<typeof inputValues>;

function textsOf(inputs: Readonly<Record<string, InputValue>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, value]) => [name, value.from === 'text' ? value.text : '']),
  );
}

/** @throws Error whose message names the form and what is possible, never the value */
export function parseInputValue(text: string): InputValue {
  if (text === 'blank') return { from: 'text', text: '' };
  if (text === 'ignore') return { from: 'ignore' };
  const [, form, rest] = /^([a-z]+):([\s\S]*)$/.exec(text) ?? [];
  if (form === 'text' && rest !== undefined) return { from: 'text', text: rest };
  if (form === 'cred' && rest !== undefined && osParameterName.safeParse(rest).success)
    return { from: 'cred', name: rest };
  const what = form === undefined ? 'a value without a prefix' : `'${form}:'`;
  throw new Error(`${what} is not allowed: use text:VALUE, cred:NAME, blank or ignore`);
}

/** The reverse of `parseInputValue`. */
export function formatInputValue(value: InputValue): string {
  if (value.from === 'ignore') return 'ignore';
  return value.from === 'cred' ? `cred:${value.name}` : `text:${value.text}`;
}

/** An input that a script declares in its header. */
export const declaredInput = z.strictObject({
  name: inputName,
  required: z.boolean(),
  /** What it has where nobody gives it anything. */
  default: inputValue.nullable(),
  /** The only values that it takes; absent: any. */
  possible: z.array(inputValue).min(1).max(MAX_POSSIBLE_VALUES).optional(),
});
export type DeclaredInput = z.infer<typeof declaredInput>;

/** A script as the operator gives it. */
export const runListScript = z.strictObject({
  name: fileName.max(100),
  content: base64
    .max(MAX_SCRIPT_BASE64)
    .refine(hasInterpreter, 'the first line does not begin with #!')
    .refine(hasUnixLines, 'lines end with CR LF: remove the CRs (sed -i "s/\\r$//" FILE)'),
  /** Null: it declares none, and gets all that there are. */
  inputs: z.array(declaredInput).max(MAX_INPUTS).nullable().default(null),
});
export type RunListScript = z.infer<typeof runListScript>;

const attachment = z.strictObject({
  name: attachmentName,
  content: base64.max(MAX_SCRIPT_BASE64),
});
export type Attachment = z.infer<typeof attachment>;

/** An instance's own run lists. */
export const runLists = z
  .strictObject({
    boot: z.array(runListScript).max(MAX_RUN_LIST_SCRIPTS).default([]),
    operational: z.array(runListScript).max(MAX_RUN_LIST_SCRIPTS).default([]),
    decommission: z.array(runListScript).max(MAX_RUN_LIST_SCRIPTS).default([]),
    attachments: z.array(attachment).max(MAX_RUN_LIST_SCRIPTS).default([]),
    inputs: inputValues.default({}),
  })
  .superRefine((lists, context) => {
    const scripts = RUN_LISTS.flatMap((list) => lists[list]);
    if (scripts.length > MAX_RUN_LIST_SCRIPTS)
      context.addIssue({ code: 'custom', message: `more than ${MAX_RUN_LIST_SCRIPTS} scripts` });
    const bytes = [...scripts, ...lists.attachments].map(({ content }) => decodedBytes(content));
    if (bytes.some((size) => size > MAX_RUN_LIST_SCRIPT_BYTES))
      context.addIssue({ code: 'custom', message: 'a file is larger than 1 MiB' });
    if (bytes.reduce((sum, size) => sum + size, 0) > MAX_RUN_LISTS_BYTES)
      context.addIssue({
        code: 'custom',
        message: 'scripts and attachments are larger than 4 MiB in total',
      });
    // Scripts may have the same name: a guest gets them with their numbers.
    const names = lists.attachments.map(({ name }) => name);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['attachments'],
        message: `'${twice}' occurs twice`,
      });
  });
export type RunLists = z.infer<typeof runLists>;

function hasInterpreter(content: string): boolean {
  // base64 of `#!` and whatever comes next
  return /^Iy[E-H]/.test(content);
}

/** Linux takes the CR of a first line for a part of the interpreter's name. */
function hasUnixLines(content: string): boolean {
  const [first = ''] = Buffer.from(content, 'base64').toString('latin1').split('\n', 1);
  return !first.endsWith('\r');
}

function decodedBytes(content: string): number {
  return Buffer.byteLength(content, 'base64');
}

/** Why a guest is decommissioned. */
export const decommissionKind = z.enum(['reboot', 'stop', 'terminate', 'service_restart']);

/**
 * Only the host decides `failed`: a deadline passed, the decommission list was ended at its limit,
 * or the machine ended too early.
 */
export const LIFECYCLE_STATES = [
  'booting',
  'operational',
  'stranded',
  'decommissioning',
  'decommissioned',
  'failed',
] as const;
export const lifecycleState = z.enum(LIFECYCLE_STATES);
export type LifecycleState = z.infer<typeof lifecycleState>;

/**
 * One running of one script: `boot/01-base`, `decommission/02-leave`, or the UUID of a command for
 * one on demand.
 */
export const lifecycleEntry = z.union([
  uuid,
  z
    .string()
    .max(140)
    .regex(/^(boot|decommission)\/[A-Za-z0-9_+.-]+$/, 'not a run list entry'),
]);

/** `number` is 1 for a boot's first event, and larger for each that follows. */
const said = {
  /** As lifecycle.json has it. */
  run: uuid,
  /** The guest kernel's boot, from /proc/sys/kernel/random/boot_id. */
  boot: uuid,
  number: z.number().int().positive().max(Number.MAX_SAFE_INTEGER),
} as const;

/** What a guest posts to lifecycle/events. */
export const lifecycleEvent = z.discriminatedUnion('type', [
  /** The first word of each boot. */
  z.strictObject({ type: z.literal('booting'), ...said }),
  z.strictObject({ type: z.literal('started'), ...said, entry: lifecycleEntry }),
  z.strictObject({
    type: z.literal('finished'),
    ...said,
    entry: lifecycleEntry,
    /** As a shell says it: more than 128 is a signal. */
    status: z.number().int().min(0).max(255),
  }),
  z.strictObject({ type: z.literal('operational'), ...said }),
  z.strictObject({ type: z.literal('stranded'), ...said }),
  z.strictObject({ type: z.literal('decommissioning'), ...said, kind: decommissionKind }),
  z.strictObject({
    type: z.literal('decommissioned'),
    ...said,
    /** The agent ended the list at its limit. */
    timedOut: z.literal(true).optional(),
  }),
]);
export type LifecycleEvent = z.infer<typeof lifecycleEvent>;

/** Body of POST /ganeti/<v>/lifecycle/events. */
export const lifecycleEventBatch = z.array(lifecycleEvent).min(1).max(MAX_LIFECYCLE_EVENTS);

/** How far a guest got in its present boot, by its own words in their order. */
export const lifecycleProgress = z.strictObject({
  /** Null before its first word in this run. */
  boot: uuid.nullable(),
  /** The number of its last event. */
  number: z.number().int().nonnegative(),
  state: lifecycleState.exclude(['failed']),
  kind: decommissionKind.nullable(),
  /** What runs. */
  entry: lifecycleEntry.nullable(),
  /** What ended last in the present state, and how. */
  last: z
    .strictObject({ entry: lifecycleEntry, status: z.number().int().min(0).max(255) })
    .nullable(),
});
export type LifecycleProgress = z.infer<typeof lifecycleProgress>;

export const NO_PROGRESS: LifecycleProgress = {
  ...{ boot: null, number: 0, state: 'booting', kind: null, entry: null, last: null },
};

/** What the host wants of the guest's agent. */
export const lifecycleCommand = z.discriminatedUnion('do', [
  /**
   * Runs one script of the operational list. When it is not wanted any more while it runs, it has
   * been cancelled.
   */
  z.strictObject({
    do: z.literal('run'),
    entry: uuid,
    /** As in run-lists/operational/. */
    script: fileName,
  }),
  /** Tells its operating system to go down, or to begin anew. */
  z.strictObject({
    do: z.enum(['reboot', 'stop', 'terminate']),
    /**
     * What the scripts are told it is for, where that is another: it goes down to be started again.
     */
    kind: z.literal('reboot').optional(),
    entry: uuid,
  }),
]);
export type LifecycleCommand = z.infer<typeof lifecycleCommand>;

/** GET /ganeti/<v>/lifecycle.json, as it is. */
export const lifecycleStatus = z.strictObject({
  state: lifecycleState,
  /** From a start to a stop, over reboots. */
  run: uuid,
  kind: decommissionKind.nullable(),
  /** When the power is cut, or a guest that is not operational is stopped. */
  deadlineMs: z.number().nonnegative().nullable(),
  /** The limit of the decommission list in seconds, at which the agent ends its scripts. */
  decommissionTimeoutS: z.number().int().positive(),
  next: lifecycleCommand.nullable(),
});
export type LifecycleStatus = z.infer<typeof lifecycleStatus>;

/** A variable of a script's environment; a parameter's value is that of the view's osParameters. */
export const environmentValue = z.union([
  z.strictObject({ text: noNul }),
  z.strictObject({ parameter: osParameterName }),
]);
const environment = z.record(inputName, environmentValue);
export type RunListEnvironment = z.infer<typeof environment>;

export const viewScript = z.strictObject({
  /** `01-base`: its place in the list and its name. */
  name: fileName,
  content: base64.max(MAX_SCRIPT_BASE64),
  /** Null: it declares no inputs, and gets those that all get. */
  env: environment.nullable(),
});
export type ViewScript = z.infer<typeof viewScript>;

/** What a view has of it; absent where an instance has no run lists. */
export const viewLifecycle = z.strictObject({
  status: lifecycleStatus,
  /** For a metad that is new: what it heard itself of the same boot is newer. */
  progress: lifecycleProgress,
  lists: z.strictObject({
    boot: z.array(viewScript).max(MAX_RUN_LIST_SCRIPTS),
    operational: z.array(viewScript).max(MAX_RUN_LIST_SCRIPTS),
    decommission: z.array(viewScript).max(MAX_RUN_LIST_SCRIPTS),
  }),
  attachments: z.array(attachment).max(MAX_RUN_LIST_SCRIPTS),
  /** Variables of every script that declares no inputs. */
  env: environment,
  /** Given with the present command, over what its script has. */
  commandEnv: environment,
});
export type ViewLifecycle = z.infer<typeof viewLifecycle>;

/** What metad tells the node daemon: an event that was taken, and how far it brings the guest. */
export const lifecycleAdvance = z.object({
  type: z.literal('lifecycle'),
  event: lifecycleEvent,
  progress: lifecycleProgress,
});
export type LifecycleAdvance = z.infer<typeof lifecycleAdvance>;

/** A piece of what a script printed, masked: whole lines, but for the last and one too long. */
export const lifecycleOutput = z.object({
  type: z.literal('lifecycle-output'),
  run: uuid,
  entry: lifecycleEntry,
  text: z.string().max(MAX_OUTPUT_TEXT_LENGTH),
  /** Bytes before it that were counted and not kept. */
  lostBytes: z.number().int().nonnegative(),
});

/** The entry of a script of the boot or the decommission list. */
export function entryOf(list: 'boot' | 'decommission', script: string): string {
  return `${list}/${script}`;
}

/** What the store keeps of the present run, or of the last one. */
export const lifecycleRecord = z.object({
  run: uuid,
  /** Of which machine; a reboot by stop and start goes on in another. */
  runStartedAtMs: z.number(),
  state: lifecycleState,
  kind: decommissionKind.nullable(),
  /** The script that runs, or ended last, and how. */
  script: lifecycleEntry.nullable(),
  exitStatus: z.number().int().nullable(),
  /** Why it is stranded or failed; in what is told also why it does not get on. */
  reason: z.string().max(1024).nullable(),
  /** How the host wants it to go down; null when it does not. */
  announced: lifecycleCommand.nullable(),
  deadlineMs: z.number().nullable(),
  progress: lifecycleProgress,
  /** Events of metad up to this one have been heard. */
  sequence: z.number().int().nonnegative(),
});
export type LifecycleRecord = z.infer<typeof lifecycleRecord>;

/** Why a guest stays in state `booting`. */
export const SILENT_AGENT =
  'the agent for run lists has reported nothing since the start: it is not installed, the guest has neither curl nor wget, or the guest does not reach the metadata service';

/** What is told of it. */
export const lifecycleInfo = lifecycleRecord.pick({
  run: true,
  state: true,
  kind: true,
  script: true,
  exitStatus: true,
  reason: true,
  deadlineMs: true,
});
export type LifecycleInfo = z.infer<typeof lifecycleInfo>;
