import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';

/** How the process of one test file reports: to people on its output, to the runner by a line of JSON each. */
export type Report =
  | { readonly kind: 'open' | 'closed'; readonly test: string }
  | {
      readonly kind: 'failed';
      readonly name: string;
      readonly error: string;
      /** Of a suite itself: why its tests were cancelled, which they do not say. */
      readonly isOfSuite?: true;
      /** Any file of the process may have done it. */
      readonly isStray?: true;
    }
  | { readonly kind: 'passed' | 'skipped'; readonly name: string }
  /** A file that shares its process has ended; what was told since the one before is of its tests. */
  | { readonly kind: 'file'; readonly path: string; readonly hasPassed: boolean }
  /** All tests have been told of. A process that ends before it, with whatever code, has lost some. */
  | { readonly kind: 'end' };

/** The runner's ends of these are pipes: reports go into one; the other closes when the runner is gone, also by SIGKILL. */
const REPORT_FD = 3;
const LIFE_FD = 4;
const STRAY = 'an error that belongs to no test';
const TOGETHER = fileURLToPath(new URL('./together.ts', import.meta.url));

// What a test starts with the arguments of this process is no test file of the runner's, and has the memory and threads that it always has.
process.execArgv = process.execArgv.filter(
  (argument) => !/^--(?:test-reporter|min-semi-space|v8-pool-size)/.test(argument),
);

const life = new Socket({ fd: LIFE_FD, readable: true, writable: false });
life.on('close', () => process.exit(1)).on('error', () => {});
life.resume();
life.unref();

/** What nothing caught, in full: the test runner tells of one that it knows no test for by its sentence alone. */
const stray: unknown[] = [];
process.on('uncaughtExceptionMonitor', (error) => stray.push(error));
process.on('unhandledRejection', (reason) => stray.push(reason));

interface Event {
  readonly type: string;
  readonly data: {
    readonly name: string;
    readonly nesting: number;
    readonly file?: string;
    readonly line?: number;
    readonly message?: string;
    readonly skip?: string | boolean;
    readonly todo?: string | boolean;
    readonly details?: {
      readonly type?: string;
      readonly error?: Error & { readonly failureType?: string };
    };
  };
}

/** Of the whole file: its counts, and what was thrown that belongs to no test. A test has imports before it. */
const isOfFile = ({ type, data }: Event) =>
  type === 'test:diagnostic' && data.nesting === 0 && data.line === 1;

/** What suites have failed with: a hook of the file fails each of them with the same. */
const told = new Set<unknown>();

/** A suite fails by its tests, which tell of that themselves, or by what it does before and after them. */
function reportOfSuite({ name, details }: Event['data']): Report | undefined {
  const { error } = details ?? {};
  if (!error || /^(?:subtestsFailed|cancelledByParent)$/.test(error.failureType ?? '')) return undefined;
  const cause = error.cause ?? error;
  // Two texts may be equal by chance.
  if (typeof cause === 'object' && told.has(cause)) return undefined;
  told.add(cause);
  const why = `${error.message}\n${inspect(cause)}`;
  return { kind: 'failed', name: `the suite ${name}`, error: why, isOfSuite: true };
}

function reportOf({ type, data }: Event): Report | undefined {
  const { name, skip, todo, message } = data;
  if (isOfFile({ type, data }) && message?.startsWith('Error: '))
    return {
      ...{ kind: 'failed', name: STRAY, isStray: true },
      error: [message, ...stray.map((one) => inspect(one))].join('\n'),
    };
  const test = `${name} (line ${data.line ?? '?'})`;
  if (type === 'test:dequeue') return { kind: 'open', test };
  if (type === 'test:complete') return { kind: 'closed', test };
  const isLeftOut = skip !== undefined || todo !== undefined;
  const isSuite = data.details?.type === 'suite';
  if (isSuite && type === 'test:fail') return reportOfSuite(data);
  // One that passed is told of by its tests; one that is skipped has none.
  if (isSuite && !(type === 'test:pass' && isLeftOut)) return undefined;
  if (type === 'test:fail')
    return { kind: 'failed', name, error: inspect(data.details?.error?.cause ?? data.details?.error) };
  if (type !== 'test:pass') return undefined;
  if (!isLeftOut) return { kind: 'passed', name };
  return { kind: 'skipped', name: `${name}${typeof skip === 'string' ? `: ${skip}` : ''}` };
}

/** The counts of one file are the runner's to add up. */
const isForPeople = (event: Event) => event.type !== 'test:summary' && !isOfFile(event);

/** A file that shares this process with others has ended. They are told of one after another. */
const isFileDone = ({ type, data }: Event) =>
  /^test:(?:pass|fail)$/.test(type) &&
  data.details?.type === 'suite' &&
  data.nesting === 0 &&
  data.file === TOGETHER;

const send = (report: Report) => writeSync(REPORT_FD, `${JSON.stringify(report)}\n`);

async function* tell(source: AsyncIterable<Event>): AsyncGenerator<Event> {
  let tests = 0;
  for await (const event of source) {
    const report = reportOf(event);
    if (report) send(report);
    if (report && /^(?:passed|failed|skipped)$/.test(report.kind)) tests++;
    if (isFileDone(event)) {
      const hasPassed = event.type === 'test:pass';
      if (tests === 0 && hasPassed)
        send({ kind: 'failed', name: `${event.data.name} has no test`, error: 'none was told of' });
      send({ kind: 'file', path: event.data.name, hasPassed: hasPassed && tests > 0 });
      tests = 0;
    }
    if (isForPeople(event)) yield event;
  }
  send({ kind: 'end' });
}

export default async function* report(source: AsyncIterable<Event>): AsyncGenerator<string> {
  yield* Readable.from(tell(source)).pipe(new spec()) as AsyncIterable<string>;
}
