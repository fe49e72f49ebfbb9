import { type Client, type Handlers, type HttpServer, serveAll } from '@skerry/kit';
import { AppError, createParser, parseMessageHash, scanJsonObject } from '@skerry/protocol';
import { PROGRAMS_API } from '@skerry/protocol/api/compute/programs';
import { RunBody } from '@skerry/protocol/api/core/programs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createProgramCheck } from './diagnostic.ts';
import { answerableHeaders, callHeaders, variablesOf } from './http-fields.ts';
import type { ProgramAnswer, Programs } from './programs.ts';
import type { SandboxCall } from './sandbox/sandbox.ts';

const parseRunBody = createParser(RunBody, 'body', 'INVALID_PARAMETERS');

/**
 * By which a core node says which of its callers a run is for, in a word that says nothing else of them. Believed from
 * services of this network only (SKERRY_COMPUTE_RATE_EXEMPT).
 */
const CALLER_HEADER = 'net-program-caller';
const CALLER = /^[0-9a-f]{32}$/;

export type ClientOf = (request: FastifyRequest['raw']) => Client;

function callerOf(request: FastifyRequest, clientOf: ClientOf): string {
  const { key, isExempt } = clientOf(request.raw);
  const caller = request.headers[CALLER_HEADER];
  return isExempt && typeof caller === 'string' && CALLER.test(caller) ? `${key} ${caller}` : key;
}

/** Told with every answer of a program, so that nobody takes its status for the node's. */
const OUTCOME_HEADER = 'net-program-outcome';

const failureOf = (traceback: string) =>
  new AppError('PROGRAM_FAILED', 'the program raised an error', { details: { traceback } });

const wantsJson = ({ headers }: FastifyRequest) => (headers.accept ?? '').startsWith('application/json');

function reply({ program, result, start, runId }: ProgramAnswer, to: FastifyReply): FastifyReply {
  to.headers({
    'net-program-itemhash': program.hash,
    'net-program-code-ref': program.codeRef,
    'net-program-run': runId,
    'net-program-start': start,
    [OUTCOME_HEADER]: result.kind === 'answer' ? 'answered' : 'failed',
    'x-content-type-options': 'nosniff',
  });
  if (result.kind === 'failed')
    return to.status(500).type('text/plain; charset=utf-8').send(result.traceback);
  return to.headers(answerableHeaders(result.headers)).status(result.status).send(result.body);
}

/** `/vm/{hash}/...` as the program hears of it. @param named the program as the request names it */
function passedCall(request: FastifyRequest, named: string, body: Buffer): SandboxCall {
  const { method, headers } = request;
  const [path = '', query = ''] = splitOnce(request.raw.url ?? '', '?');
  return {
    method,
    path: path.slice(`/vm/${named}`.length) || '/',
    query,
    headers: callHeaders(headers),
    variables: variablesOf(body, query),
    isRun: false,
    body,
  };
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + mark.length)];
}

/** `POST /run/{hash}` as the program hears of it: a POST of the body, whose variables functions are given. */
function runCall(body: Buffer): SandboxCall {
  const parsed = body.length === 0 ? {} : parseRunBody(scanJsonObject(body).value);
  return {
    method: 'POST',
    path: '/',
    query: '',
    headers: { 'content-type': 'application/json' },
    variables: parsed.variables ?? {},
    isRun: true,
    body,
  };
}

type ProgramHandlers = Handlers<typeof PROGRAMS_API>;

function callHandlers(programs: Programs, clientOf: ClientOf): Omit<ProgramHandlers, 'checkPrograms'> {
  const pass: ProgramHandlers['callProgram'] = async ({ params, body, request, reply: to }) => {
    const { hash } = parseMessageHash(params.hash);
    const call = passedCall(request, params.hash, body as Buffer);
    const answer = await programs.run(hash, call, callerOf(request, clientOf));
    if (answer.result.kind === 'failed' && wantsJson(request)) throw failureOf(answer.result.traceback);
    return reply(answer, to);
  };
  return {
    callProgram: pass,
    callProgramPath: pass,
    async runProgram({ params, body, request, reply: to }) {
      const { hash } = parseMessageHash(params.hash);
      const answer = await programs.run(hash, runCall(body as Buffer), callerOf(request, clientOf));
      if (answer.result.kind === 'failed') throw failureOf(answer.result.traceback);
      return reply(answer, to);
    },
  };
}

/** Programs over HTTP: anything that a program answers to, and runs with variables as core nodes send them. */
export function addProgramRoutes(
  app: HttpServer,
  programs: Programs,
  clientOf: ClientOf,
  diagnosticHashes: readonly string[],
): void {
  const handlers = { ...callHandlers(programs, clientOf), checkPrograms: createProgramCheck(programs) };
  // What monitors measure a node by costs little and is asked often.
  const rateClassOf = ({ params }: FastifyRequest) =>
    diagnosticHashes.includes((params as { hash: string }).hash) ? 'general' : 'heavy';
  // Whoever published a program decides how long it takes: no operator is to be told of that.
  serveAll(app, PROGRAMS_API, handlers, ({ rateClass }) =>
    rateClass === 'heavy' ? { config: { rateClassOf, slowAfterMs: Infinity } } : {},
  );
}

/** Where programs cannot run, what would have called one says why. */
export function refusePrograms(app: HttpServer, refuse: () => never): void {
  serveAll(app, PROGRAMS_API, {
    callProgram: refuse,
    callProgramPath: refuse,
    runProgram: refuse,
    checkPrograms: refuse,
  });
}
