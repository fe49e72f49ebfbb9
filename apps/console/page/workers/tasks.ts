import type { AskedSigner, ListedMessage } from '@skerry/client';
import { AppError, hostnameOf, IMAGES } from '@skerry/protocol';
import type { Quote } from '../pure/owner/cost.ts';
import { type AddedUp, addUp } from './account.ts';
import { type Action, act, type Done } from './actions.ts';
import { type AnnouncedNode, judgeAnnounced, probeKey } from './announced.ts';
import { type Advice, signerThatAsks, type ToSign } from './ask-owner.ts';
import { type CoreFact, judgeCores } from './core-keys.ts';
import { type RecomputedState, recomputeState, type StateTrust } from './digests.ts';
import { type Owner, type Priced, quote } from './explain.ts';
import { type FoundSystems, findSystems, type JudgedFact, judgeAddress, judgeScore } from './facts.ts';
import { type JudgedMachine, judgeListed, judgeMachines, type ToldMessage } from './listed.ts';
import { type JudgedChange, judgeEvent, type ToldEvent } from './machine/change.ts';
import { type Copies, type CopyAction, workOnCopies } from './machine/copies.ts';
import {
  type LogLine,
  type LogsOf,
  type ProgramLog,
  type ProgramLogsOf,
  readMachineLogs,
  readProgramLogs,
} from './machine/logs.ts';
import type { MachineAt } from './machine/machine.ts';
import { type Judged, judgeMessages, type ProvenMessage, proveMessage, proveOnChain } from './messages.ts';
import { type JudgedDraw, judgeDraw } from './random.ts';
import { type Recomputed, recompute } from './recompute.ts';
import { readTraffic, type Traffic, type TrafficOf } from './traffic.ts';
import { type Uploaded, upload } from './upload.ts';
import { askWebhooks, type WebhookAnswer, type WebhookQuestion } from './webhooks.ts';

/** What the verifier can be asked for, by name. */
export interface Tasks {
  readonly recompute: {
    readonly asked: { readonly coreUrl: string; readonly scores: string; readonly nodeId: string };
    readonly answer: Recomputed;
  };
  readonly hostnames: {
    readonly asked: { readonly ids: readonly string[] };
    readonly answer: Readonly<Record<string, string>>;
  };
  readonly message: {
    readonly asked: { readonly coreUrl: string; readonly hash: string };
    readonly answer: ProvenMessage;
  };
  readonly onChain: {
    readonly asked: Parameters<typeof proveOnChain>[0];
    readonly answer: Awaited<ReturnType<typeof proveOnChain>>;
  };
  readonly messages: {
    readonly asked: { readonly coreUrl: string; readonly rows: readonly ListedMessage[] };
    readonly answer: readonly Judged[];
  };
  /** Lines that come with what proves them. */
  readonly listed: {
    readonly asked: { readonly rows: readonly ToldMessage[] };
    readonly answer: readonly Judged[];
  };
  readonly machines: {
    readonly asked: {
      readonly coreUrl: string;
      readonly rows: readonly unknown[];
      readonly schedulers: readonly string[];
    };
    readonly answer: readonly JudgedMachine[];
  };
  /** Of a change of a machine what its message says. */
  readonly change: {
    readonly asked: ToldEvent;
    readonly answer: JudgedChange;
  };
  readonly state: {
    readonly asked: { readonly coreUrl: string; readonly trust: StateTrust };
    readonly answer: RecomputedState;
  };
  readonly account: {
    readonly asked: {
      readonly coreUrl: string;
      readonly address: string;
      readonly publishers: readonly string[];
    };
    readonly answer: AddedUp;
  };
  readonly address: {
    readonly asked: Parameters<typeof judgeAddress>[0];
    readonly answer: JudgedFact;
  };
  readonly score: {
    readonly asked: Parameters<typeof judgeScore>[0];
    readonly answer: JudgedFact;
  };
  readonly systems: {
    readonly asked: Parameters<typeof findSystems>[0] & {
      /** The newest scores: with others there are other measurements. */
      readonly scores: string | undefined;
    };
    readonly answer: FoundSystems;
  };
  /** Whether a compute node is where it signed to be, and whether its key answers there. */
  readonly announced: {
    readonly asked: AnnouncedNode & { readonly coreUrl: string };
    readonly answer: JudgedFact;
  };
  readonly nodeKey: {
    readonly asked: Parameters<typeof probeKey>[0];
    readonly answer: JudgedFact;
  };
  /** Whether the keys of core nodes answer at their URLs. */
  readonly coreKeys: {
    readonly asked: Parameters<typeof judgeCores>[0];
    readonly answer: readonly CoreFact[];
  };
  readonly random: {
    readonly asked: { readonly coreUrl: string; readonly claim: unknown };
    readonly answer: JudgedDraw;
  };
  /** Names of images that compute nodes can make a machine of. */
  readonly images: { readonly asked: object; readonly answer: readonly string[] };
  readonly quote: {
    readonly asked: { readonly coreUrl: string; readonly priced: Priced };
    readonly answer: Quote;
  };
  /** What its owner signs: asked with `by`. */
  readonly act: {
    readonly asked: { readonly coreUrl: string; readonly action: Action };
    readonly answer: Done;
  };
  /** Asked with `by`: the first time, the owner signs a pass for the compute node. */
  readonly machineLogs: { readonly asked: LogsOf; readonly answer: readonly LogLine[] };
  /** What a program wrote, by node: asked with `by`, as above. */
  readonly programLogs: { readonly asked: ProgramLogsOf; readonly answer: readonly ProgramLog[] };
  /** Snapshots and backups of its disk: asked with `by`, as above. */
  readonly machineCopies: {
    readonly asked: MachineAt & { readonly action: CopyAction };
    readonly answer: Copies;
  };
  /** Asked with `by`: the first time, the owner signs a pass for the gateway. */
  readonly traffic: { readonly asked: TrafficOf; readonly answer: Traffic };
  /** Asked with `by`. It tells how far it is: hashed from 0 to 1, sent from 1 to 2. */
  readonly upload: {
    readonly asked: { readonly coreUrl: string; readonly file: File };
    readonly answer: Uploaded;
  };
  /** What the owner of webhooks signs: asked with `by`. */
  readonly webhook: {
    readonly asked: { readonly coreUrl: string; readonly question: WebhookQuestion };
    readonly answer: WebhookAnswer;
  };
}
export type TaskName = keyof Tasks;

export interface Asked<N extends TaskName = TaskName> {
  readonly id: number;
  readonly name: N;
  readonly asked: Tasks[N]['asked'];
  /** Who signs what the task wants signed. */
  readonly by?: Owner | undefined;
}

export type Told =
  | { readonly kind: 'ready' }
  | { readonly kind: 'progress'; readonly id: number; readonly done: number }
  | { readonly kind: 'sign'; readonly id: number; readonly toSign: ToSign }
  | { readonly kind: 'advice'; readonly advice: Advice }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly code: string; readonly message: string };

type Handlers = {
  readonly [N in TaskName]: (
    asked: Tasks[N]['asked'],
    onProgress: (done: number) => void,
    signer: AskedSigner | undefined,
  ) => Tasks[N]['answer'] | Promise<Tasks[N]['answer']>;
};

const HANDLERS: Handlers = {
  recompute: ({ coreUrl, scores, nodeId }, onProgress) => recompute(coreUrl, scores, nodeId, onProgress),
  hostnames: ({ ids }) => Object.fromEntries(ids.map((id) => [id, hostnameOf(id)])),
  message: ({ coreUrl, hash }) => proveMessage(coreUrl, hash),
  onChain: proveOnChain,
  messages: ({ coreUrl, rows }) => judgeMessages(coreUrl, rows),
  listed: ({ rows }) => judgeListed(rows),
  machines: ({ coreUrl, rows, schedulers }) => judgeMachines(coreUrl, rows, schedulers),
  change: (asked) => judgeEvent(asked),
  state: ({ coreUrl, trust }, onProgress) => recomputeState(coreUrl, trust, onProgress),
  account: (asked, onProgress) => addUp(asked, onProgress),
  address: judgeAddress,
  score: judgeScore,
  announced: judgeAnnounced,
  nodeKey: probeKey,
  coreKeys: judgeCores,
  systems: findSystems,
  random: ({ coreUrl, claim }) => judgeDraw(coreUrl, claim),
  images: () => IMAGES,
  quote: ({ coreUrl, priced }) => quote(coreUrl, priced),
  act: ({ coreUrl, action }, _onProgress, signer) => act(coreUrl, action, signer),
  machineLogs: (asked, _onProgress, signer) => readMachineLogs(asked, signer),
  programLogs: (asked, _onProgress, signer) => readProgramLogs(asked, signer),
  machineCopies: ({ action, ...of }, _onProgress, signer) => workOnCopies(of, action, signer),
  traffic: (of, _onProgress, signer) => readTraffic(of, signer),
  upload: ({ coreUrl, file }, onProgress, signer) => upload(coreUrl, file, signer, onProgress),
  webhook: ({ coreUrl, question }, _onProgress, signer) => askWebhooks(coreUrl, question, signer),
};

/** Does a task, and tells of it until it is done. */
export async function doTask<N extends TaskName>(
  { id, name, asked, by }: Asked<N>,
  tell: (told: Told) => void,
): Promise<void> {
  try {
    const signer =
      by &&
      signerThatAsks(
        by,
        (toSign) => tell({ kind: 'sign', id, toSign }),
        (advice) => tell({ kind: 'advice', advice }),
      );
    const answer = await HANDLERS[name](asked, (done) => tell({ kind: 'progress', id, done }), signer);
    tell({ kind: 'answer', id, answer });
  } catch (error) {
    const [code, message] =
      error instanceof AppError ? [error.code, error.message] : ['INTERNAL', String(error)];
    tell({ kind: 'failure', id, code, message });
  }
}
