import { codeOfCause, isNotBelieved } from '@skerry/client/cause';
import type { AppError, ErrorBody, ErrorCode } from '@skerry/protocol';
import { CommanderError } from 'commander';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { jsonText, terminalText } from './output/text.ts';

export interface Failure {
  readonly body: ErrorBody;
  readonly hint: string | undefined;
  readonly exitCode: number;
}

/** Of a service that nobody is at the place of. */
const IS_IT_RUNNING =
  'is the network running? "skerry up" starts one here; --core and --gateway select another';

/** Of one that is there, or seems to be, and lets whoever asks wait. */
const IT_HANGS =
  'it hangs, is overloaded, or cannot be reached from here: on its computer, "skerry logs" says more, and a restart ends a hang';

const NOT_BELIEVED =
  "nothing was sent. Are this computer's clock and the address right? Otherwise whoever runs it has to renew the certificate; an authority of your own goes into NODE_EXTRA_CA_CERTS=FILE";

const SET_CLOCK = "set this computer's clock";

/** What a person can do about it, where that is the same wherever the code comes from. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  ROUTE_NOT_FOUND:
    'the address that was asked may be that of another service, or of an older release: see "skerry network show"',
  DEVNET_RUNNING: '"skerry down" ends the one that runs; a second network needs its own --data-dir and ports',
  NO_RUNNER: 'it is not the fault of the program: "skerry status" shows whether compute nodes answer',
  TIMESTAMP_IN_FUTURE: SET_CLOCK,
  TIMESTAMP_TOO_OLD: SET_CLOCK,
};

const ITEM_HASH = /^[0-9a-f]{64}$/;

/** The message that was sent and may have arrived all the same. Of these errors the client alone says it: no node has a say in it. */
export function lostMessageOf({ code, details }: Pick<AppError, 'code' | 'details'>): string | undefined {
  if (code !== 'UPSTREAM_UNAVAILABLE' && code !== 'INTERNAL') return undefined;
  const { item_hash: sent } = (details ?? {}) as { item_hash?: unknown };
  return typeof sent === 'string' && ITEM_HASH.test(sent) ? sent : undefined;
}

function hintOf(error: AppError): string | undefined {
  const { code, details, cause } = error;
  const { hint, late, node_time: nodeTime } = (details ?? {}) as Record<string, unknown>;
  if (typeof hint === 'string') return hint;
  // A signature is refused for many reasons: with its time, the node says that it is the clock.
  if (code === 'INVALID_SIGNATURE' && typeof nodeTime === 'number') return SET_CLOCK;
  const sent = lostMessageOf(error);
  if (sent !== undefined)
    return `the message may have arrived: "skerry message get ${sent}" tells, and sent again it is another one`;
  if (code !== 'UPSTREAM_UNAVAILABLE') return HINTS[code];
  if (late === true) return IT_HANGS;
  return isNotBelieved(codeOfCause(cause ?? {}) ?? '') ? NOT_BELIEVED : IS_IT_RUNNING;
}

/** Recognised by name, so that this file does not load the whole protocol for a typing error. */
const isAppError = (error: unknown): error is AppError =>
  error instanceof Error && error.name === 'AppError' && 'code' in error;

/** How Commander tells a wrong argument. */
const ARGUMENT = /^command-argument value ('.*') is invalid for argument '([^']*)'(?=\.)/s;

/** Any failure as what is told: code, sentence, hint, exit code. */
export function describeFailure(error: unknown): Failure {
  if (error instanceof CommanderError) {
    const message = error.message
      .replace(/^error: /, '')
      .replace(ARGUMENT, "argument '$2' cannot be $1")
      .replace(/\n/g, ' ');
    const { commandPath = 'skerry' } = error as { commandPath?: string };
    return {
      body: { error: message, status: 'error', code: 'INVALID_PARAMETERS' },
      hint: `see "${commandPath} --help"`,
      exitCode: EXIT.wrongUse,
    };
  }
  if (isAppError(error)) {
    const { message, code, details } = error;
    return {
      body: { error: message, status: 'error', code, ...(details === undefined ? {} : { details }) },
      hint: hintOf(error),
      exitCode: exitCodeOf(error),
    };
  }
  if (error instanceof Error && 'syscall' in error) {
    // The system refused something: no right, no room, no such directory. It says so itself.
    return {
      body: { error: error.message, status: 'error', code: 'INTERNAL' },
      hint: undefined,
      exitCode: EXIT.failed,
    };
  }
  return {
    body: {
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      status: 'error',
      code: 'INTERNAL',
    },
    hint: 'this is a bug in the skerry command',
    exitCode: EXIT.failed,
  };
}

/** Somebody else may have written it: of its lines, none but the first begins where the command's own words do. */
const indented = (text: string) => text.replaceAll('\n', '\n  ');

/** `error: sentence (CODE)` and a hint, or the JSON body. */
export function renderFailure({ body, hint }: Failure, json: boolean): string {
  if (json) return `${jsonText(hint === undefined ? body : { ...body, hint })}\n`;
  const text = `error: ${indented(body.error)} (${body.code})\n${hint === undefined ? '' : `hint: ${indented(hint)}\n`}`;
  // A node of somebody else may have written it.
  return terminalText(text, false);
}
