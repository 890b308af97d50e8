import { z } from 'zod';
import { MIB } from '../units/bytes.ts';
import { boundedText, MAX_TABLE_BYTES, sizeOfTexts } from './bounded-texts.ts';
import { base64, fileName, osParameterName, uuid } from './primitives.ts';

/**
 * Run lists: scripts that a guest runs after its boot, on demand and before its shutdown. The terms
 * are RightLink 10's.
 */

export const RUN_LISTS = ['boot', 'operational', 'decommission'] as const;
export const runListName = z.enum(RUN_LISTS);
export type RunListName = z.infer<typeof runListName>;

/** Scripts of all lists of an instance, including those of its cluster and OS definition. */
export const MAX_RUN_LIST_SCRIPTS = 64;
/** Bytes of one script or attachment. */
export const MAX_RUN_LIST_SCRIPT_BYTES = MIB;
/** Bytes of all scripts and attachments of an instance. */
export const MAX_RUN_LISTS_BYTES = 4 * MIB;
const MAX_SCRIPT_BASE64 = 1_400_000;
export const MAX_INPUTS = 256;
/** Possible values of one input. */
const MAX_POSSIBLE_VALUES = 256;

/**
 * Seconds between the limit of the decommission list, when the agent ends its scripts, and the end
 * of the agent by the service manager (metad/guest/agent.sh and enable.sh).
 */
export const AGENT_STOP_GRACE_S = 60;
/**
 * Seconds between that limit and the power cut by the host. The guest ends its services (systemd:
 * 90 s each) and unmounts in this time.
 */
export const POWER_CUT_GRACE_S = 300;

/** Events and bytes of one POST of lifecycle/events. */
export const MAX_LIFECYCLE_EVENTS = 256;
export const MAX_LIFECYCLE_EVENTS_BYTES = 256 * 1024;
/** Bytes of one POST of lifecycle/output. */
export const MAX_LIFECYCLE_OUTPUT_BYTES = 64 * 1024;
/** Stored output of one script in bytes. The rest is only counted. */
export const MAX_ENTRY_OUTPUT_BYTES = 4 * MIB;

/** Characters of one piece of output in metad's events. It fits on a line of the event stream. */
export const MAX_OUTPUT_TEXT_LENGTH = 8192;

/** A file name that cannot leave the folder of attachments. */
export const attachmentName = z
  .string()
  .max(255)
  .regex(/^[A-Za-z0-9_+][A-Za-z0-9_.+ -]*$/, 'not an attachment name');
/** A variable name that every shell accepts. */
export const inputName = z
  .string()
  .max(128)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'not an input name');
const noNul = boundedText.refine(
  (text) => !text.includes('\0'),
  'contains a NUL character, which an environment variable cannot hold',
);

/** Value of an input: a text, the value of an OS parameter, or none. */
export const inputValue = z.discriminatedUnion('from', [
  z.strictObject({ from: z.literal('text'), text: noNul }),
  /** A private or secret OS parameter. If its value is lost, the script cannot run. */
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

/** @throws Error whose message names the form and the possible forms, never the value */
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

/** Formats a value for `parseInputValue`. */
export function formatInputValue(value: InputValue): string {
  if (value.from === 'ignore') return 'ignore';
  return value.from === 'cred' ? `cred:${value.name}` : `text:${value.text}`;
}

/** An input that a script declares in its header. */
export const declaredInput = z.strictObject({
  name: inputName,
  required: z.boolean(),
  /** Value without a setting. */
  default: inputValue.nullable(),
  /** All accepted values; absent: any. */
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
  /** Null: the script declares no inputs and receives all inputs. */
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
    // Scripts may have equal names, because the guest's names contain their numbers.
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
  // base64 of `#!` and any third byte
  return /^Iy[E-H]/.test(content);
}

/** Checks the first line for a CR, which Linux treats as part of the interpreter's name. */
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
 * Only the host sets `failed`: a deadline passed, the decommission list reached its limit, or the
 * QEMU process ended too early.
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
 * One execution of a script: `boot/01-base`, `decommission/02-leave`, or the UUID of a command for
 * a script on demand.
 */
export const lifecycleEntry = z.union([
  uuid,
  z
    .string()
    .max(140)
    .regex(/^(boot|decommission)\/[A-Za-z0-9_+.-]+$/, 'not a run list entry'),
]);

/** `number` is 1 for a boot's first event and grows with each event. */
const said = {
  /** From lifecycle.json. */
  run: uuid,
  /** The guest kernel's boot, from /proc/sys/kernel/random/boot_id. */
  boot: uuid,
  number: z.number().int().positive().max(Number.MAX_SAFE_INTEGER),
} as const;

/** A guest's event at lifecycle/events. */
export const lifecycleEvent = z.discriminatedUnion('type', [
  /** The first event of each boot. */
  z.strictObject({ type: z.literal('booting'), ...said }),
  z.strictObject({ type: z.literal('started'), ...said, entry: lifecycleEntry }),
  z.strictObject({
    type: z.literal('finished'),
    ...said,
    entry: lifecycleEntry,
    /** Shell exit status; above 128: a signal. */
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

/** Progress of a guest in its present boot, from its events. */
export const lifecycleProgress = z.strictObject({
  /** Null before the first event of this run. */
  boot: uuid.nullable(),
  /** The number of its last event. */
  number: z.number().int().nonnegative(),
  state: lifecycleState.exclude(['failed']),
  kind: decommissionKind.nullable(),
  /** The running script. */
  entry: lifecycleEntry.nullable(),
  /** The last finished script of the present state. */
  last: z
    .strictObject({ entry: lifecycleEntry, status: z.number().int().min(0).max(255) })
    .nullable(),
});
export type LifecycleProgress = z.infer<typeof lifecycleProgress>;

export const NO_PROGRESS: LifecycleProgress = {
  ...{ boot: null, number: 0, state: 'booting', kind: null, entry: null, last: null },
};

/** A command of the host to the guest's agent. */
export const lifecycleCommand = z.discriminatedUnion('do', [
  /**
   * Runs one script of the operational list. The agent cancels the script if the command
   * disappears.
   */
  z.strictObject({
    do: z.literal('run'),
    entry: uuid,
    /** As in run-lists/operational/. */
    script: fileName,
  }),
  /** Shuts the guest down or reboots it. */
  z.strictObject({
    do: z.enum(['reboot', 'stop', 'terminate']),
    /** Kind that scripts see if it differs: the host starts the guest again after the shutdown. */
    kind: z.literal('reboot').optional(),
    entry: uuid,
  }),
]);
export type LifecycleCommand = z.infer<typeof lifecycleCommand>;

/** GET /ganeti/<v>/lifecycle.json. */
export const lifecycleStatus = z.strictObject({
  state: lifecycleState,
  /** Lasts from a start to a stop, across reboots. */
  run: uuid,
  kind: decommissionKind.nullable(),
  /** When the host cuts the power, or stops a guest that is not operational. */
  deadlineMs: z.number().nonnegative().nullable(),
  /** The limit of the decommission list in seconds, when the agent ends its scripts. */
  decommissionTimeoutS: z.number().int().positive(),
  next: lifecycleCommand.nullable(),
});
export type LifecycleStatus = z.infer<typeof lifecycleStatus>;

/** A variable of a script's environment: a text, or a parameter in the view's osParameters. */
export const environmentValue = z.union([
  z.strictObject({ text: noNul }),
  z.strictObject({ parameter: osParameterName }),
]);
const environment = z.record(inputName, environmentValue);
export type RunListEnvironment = z.infer<typeof environment>;

export const viewScript = z.strictObject({
  /** `01-base`: its number in the list and its name. */
  name: fileName,
  content: base64.max(MAX_SCRIPT_BASE64),
  /** Null: the script declares no inputs and receives the common ones. */
  env: environment.nullable(),
});
export type ViewScript = z.infer<typeof viewScript>;

/** Run lists in a view; absent without run lists. */
export const viewLifecycle = z.strictObject({
  status: lifecycleStatus,
  /** For a restarted metad. Events that metad itself received in the same boot are newer. */
  progress: lifecycleProgress,
  lists: z.strictObject({
    boot: z.array(viewScript).max(MAX_RUN_LIST_SCRIPTS),
    operational: z.array(viewScript).max(MAX_RUN_LIST_SCRIPTS),
    decommission: z.array(viewScript).max(MAX_RUN_LIST_SCRIPTS),
  }),
  attachments: z.array(attachment).max(MAX_RUN_LIST_SCRIPTS),
  /** Variables of every script that declares no inputs. */
  env: environment,
  /** Inputs of the present command, which override its script's. */
  commandEnv: environment,
});
export type ViewLifecycle = z.infer<typeof viewLifecycle>;

/** Event of metad: an accepted guest event, and the progress after it. */
export const lifecycleAdvance = z.object({
  type: z.literal('lifecycle'),
  event: lifecycleEvent,
  progress: lifecycleProgress,
});
export type LifecycleAdvance = z.infer<typeof lifecycleAdvance>;

/**
 * A piece of script output, masked. It has whole lines, except for the last line and long lines.
 */
export const lifecycleOutput = z.object({
  type: z.literal('lifecycle-output'),
  run: uuid,
  entry: lifecycleEntry,
  text: z.string().max(MAX_OUTPUT_TEXT_LENGTH),
  /** Bytes before the piece that were dropped. */
  lostBytes: z.number().int().nonnegative(),
});

/** Returns the entry of a script of the boot or decommission list. */
export function entryOf(list: 'boot' | 'decommission', script: string): string {
  return `${list}/${script}`;
}

/** Stored state of the present or last run. */
export const lifecycleRecord = z.object({
  run: uuid,
  /** Start of the QEMU process. A reboot by stop and start has another one in the same run. */
  runStartedAtMs: z.number(),
  state: lifecycleState,
  kind: decommissionKind.nullable(),
  /** The running script, or the last one with its exit status. */
  script: lifecycleEntry.nullable(),
  exitStatus: z.number().int().nullable(),
  /** Why it is stranded or failed. In `lifecycleInfo` also why it makes no progress. */
  reason: z.string().max(1024).nullable(),
  /** The host's command to shut down; null: none. */
  announced: lifecycleCommand.nullable(),
  deadlineMs: z.number().nullable(),
  progress: lifecycleProgress,
  /** Sequence of metad's last processed event. */
  sequence: z.number().int().nonnegative(),
});
export type LifecycleRecord = z.infer<typeof lifecycleRecord>;

/** Why a guest stays in state `booting`. */
export const SILENT_AGENT =
  'the agent for run lists has reported nothing since the start: it is not installed, the guest has neither curl nor wget, or the guest does not reach the metadata service';

/** The part of the record that the API shows. */
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
