import type { Client, HttpServer } from '@skerry/kit';
import { AppError, createParser, parseMessageHash, scanJsonObject } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { answerableHeaders, callHeaders, variablesOf } from './http-fields.ts';
import { PROGRAM_LIMITS } from './limits.ts';
import type { ProgramAnswer, Programs } from './programs.ts';
import type { SandboxCall } from './sandbox/sandbox.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

const RunBody = Type.Object(
  { variables: Type.Optional(Type.Object({}, { additionalProperties: true })) },
  { additionalProperties: false },
);
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

interface ProgramParams {
  /** Absent where the route names the program. */
  readonly hash?: string;
}

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

/** `/vm/{hash}/...` as the program hears of it. */
function passedCall(request: FastifyRequest<{ Params: ProgramParams }>, hash: string): SandboxCall {
  const { method, headers, params } = request;
  const [path = '', query = ''] = splitOnce(request.raw.url ?? '', '?');
  const body = (request.body as Buffer | undefined) ?? Buffer.alloc(0);
  return {
    method,
    path: path.slice(`/vm/${params.hash ?? hash}`.length) || '/',
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

/** Programs over HTTP: anything that a program answers to, and runs with variables as core nodes send them. */
export async function programRoutes(
  app: HttpServer,
  programs: Programs,
  clientOf: ClientOf,
  diagnosticHashes: readonly string[],
): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  const pass = async (
    named: string | undefined,
    request: FastifyRequest<{ Params: ProgramParams }>,
    to: FastifyReply,
  ) => {
    const hash = named ?? parseMessageHash(request.params.hash ?? '').hash;
    const answer = await programs.run(hash, passedCall(request, hash), callerOf(request, clientOf));
    if (answer.result.kind === 'failed' && wantsJson(request)) throw failureOf(answer.result.traceback);
    return reply(answer, to);
  };
  for (const named of [undefined, ...diagnosticHashes])
    for (const url of [`/vm/${named ?? ':hash'}`, `/vm/${named ?? ':hash'}/*`])
      app.route<{ Params: ProgramParams }>({
        method: [...METHODS],
        url,
        // What monitors measure a node by costs little and is asked often.
        config: { rateClass: named === undefined ? 'heavy' : 'general' },
        bodyLimit: PROGRAM_LIMITS.inputBytes,
        handler: (request, to) => pass(named, request, to),
      });

  app.post<{ Params: ProgramParams }>(
    '/run/:hash',
    { config: { rateClass: 'heavy' } },
    async (request, to) => {
      const { hash } = parseMessageHash(request.params.hash ?? '');
      const call = runCall((request.body as Buffer | undefined) ?? Buffer.alloc(0));
      const answer = await programs.run(hash, call, callerOf(request, clientOf));
      if (answer.result.kind === 'failed') throw failureOf(answer.result.traceback);
      return reply(answer, to);
    },
  );
}
