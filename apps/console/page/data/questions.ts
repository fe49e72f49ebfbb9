import type { Reader } from '../pure/read.ts';
import { countingScores } from '../pure/scores/counting.ts';
import {
  readCursor,
  readHealth,
  readInfo,
  readInstances,
  readMeasurements,
  readMetrics,
  readProvableInstances,
  readSchedulerNodes,
  readSchedulerStatus,
  readServices,
  type Service,
} from './answers.ts';
import { ask } from './ask.ts';
import { askScores, isSigner, scoresPauseMs, scoresQuestions } from './asking/scores.ts';
import { askServices } from './asking/services.ts';
import { serviceUrl, useNetwork } from './network.ts';
import { type Resource, useResource } from './resource.ts';

/** What views ask, and how often: together they stay far below what a node lets one client ask. */

const OFTEN_MS = 10_000;
const SELDOM_MS = 30_000;
/** What a core node counts as heavy: ten a minute, for all tabs and people at one address. */
const HEAVY_MS = 300_000;

/** Something that was told, and where. */
export interface Told<T> extends Resource<T> {
  /** The URL that answers it; undefined where nobody is asked. */
  readonly source: string | undefined;
}

/** What a core node answers. @param path undefined: it is not known yet what to ask */
export function useCore<T>(
  path: string | undefined,
  reader: Reader<T>,
  everyMs = OFTEN_MS,
  accepts: readonly number[] = [],
): Told<T> {
  const { coreUrl } = useNetwork();
  const url = path === undefined ? undefined : `${coreUrl}${path}`;
  const load = (signal: AbortSignal) => ask(url!, reader, signal, { accepts });
  return { ...useResource(url, load, everyMs, reader), source: url };
}

/** What a core node answers that it counts as heavy. */
export const useHeavy = <T>(path: string, reader: Reader<T>): Told<T> => useCore(path, reader, HEAVY_MS);

export interface FromService<T> extends Told<T> {
  /** Whether the core node says where the service is. */
  readonly isKnown: boolean;
}

/** What another service answers. */
export function useService<T>(
  name: Parameters<typeof serviceUrl>[1],
  path: string,
  reader: Reader<T>,
  everyMs = OFTEN_MS,
  load: (url: string, signal: AbortSignal) => Promise<T> = (url, signal) => ask(url, reader, signal),
): FromService<T> {
  const base = serviceUrl(useNetwork(), name);
  const url = base ? `${base}${path}` : undefined;
  const ofUrl = (signal: AbortSignal) => load(url!, signal);
  return { ...useResource(url, ofUrl, everyMs, reader), source: url, isKnown: base !== null };
}

/** A machine with what it follows from. */
export const instancePath = (id: string) => `/api/v0/instances/${encodeURIComponent(id)}?bodies=shared`;

export const useInfo = () => useCore('/api/v0/info/public.json', readInfo, SELDOM_MS);
export const useHealth = () => useCore('/api/v0/health', readHealth, OFTEN_MS, [503]);
export const useMetrics = () => useCore('/metrics.json', readMetrics);
/** The number of the newest event is how many there were. */
export const useEventCount = () => useCore('/api/v0/events?cursor=latest&limit=1', readCursor);
export const useInstances = (limit = 100) => useCore(`/api/v0/instances?limit=${limit}`, readInstances);
/** Machines on a page of their list. */
export const MACHINES_SHOWN = 100;
/** With what they follow from; of everybody where no owner is named. @param page from 1 */
export const useProvableInstances = (owner = '', page = 1) =>
  useCore(
    `/api/v0/instances?limit=${MACHINES_SHOWN}&bodies=shared${page === 1 ? '' : `&page=${page}`}${owner === '' ? '' : `&address=${encodeURIComponent(owner)}`}`,
    readProvableInstances,
    SELDOM_MS,
  );
export const useSchedulerNodes = () => useService('scheduler', '/api/v0/nodes', readSchedulerNodes);
export const useSchedulerStatus = () => useService('scheduler', '/status', readSchedulerStatus);
/** Services that are shown or told of at once: a network has thousands. */
export const SERVICES_SHOWN = 12;
const DOWN_MAX = 100;
/** Not the compute nodes that anybody announced and that never answered. */
const HEARD = '/api/services?heard=true';
const useList = (path: string, everyMs?: number) =>
  useService<readonly Service[]>('status', path, readServices, everyMs, askServices);
/** One more than is shown, which tells that there are more. */
export const useServices = () => useList(`${HEARD}&limit=${SERVICES_SHOWN + 1}`);
export const useServicesDown = () => useList(`${HEARD}&online=false&limit=${DOWN_MAX}`);
/** One compute or core node, by its name there. */
export const useServiceOf = (kind: 'core' | 'compute', nodeId: string) =>
  useList(`/api/services?permalink=${kind}-${encodeURIComponent(nodeId)}`, SELDOM_MS);

const NO_SCORES = { messages: [] };

/**
 * The newest scores messages of each publisher that the core node trusts, newest first, and the scores that count by them. Nothing is
 * asked before it has said who these are, and where it trusts nobody there are none: anybody can sign scores.
 */
export function useScores() {
  const { coreUrl, info } = useNetwork();
  const questions = scoresQuestions(coreUrl, info?.trust.scoring_publishers.value ?? []);
  const urls = questions.map(({ url }) => url);
  const load = (signal: AbortSignal) => askScores(questions, signal);
  const key = urls.length === 0 ? undefined : urls.join(' ');
  const told = useResource(key, load, scoresPauseMs(questions), askScores);
  const value = info && urls.length === 0 ? NO_SCORES : told.value;
  const counting = countingScores(value?.messages ?? [], told.atMs ?? 0);
  /** @param sender of a message that was told */
  const sourceOf = (sender: string | undefined) =>
    (questions.find((one) => isSigner(one, sender)) ?? questions[0])?.url;
  return { ...told, value, counting, sourceOf };
}

export const useMeasurements = (kind: 'core' | 'compute', nodeId: string) =>
  useCore(`/api/v0/${kind}/${encodeURIComponent(nodeId)}/metrics?format=rows`, readMeasurements, SELDOM_MS);
