import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { HttpServer } from '@skerry/kit';
import { createParser, ProgramContent, parseMessageHash, scanJsonObject } from '@skerry/protocol';
import Type from 'typebox';
import { forwardRun } from '../programs/forward.ts';
import { getProgram } from '../programs/read.ts';
import { takesBody, takesSigned } from './declare.ts';
import type { Rooms } from './rooms.ts';
import { answerSubmitted, readBodiesAsBytes, submissionViews, submitBody } from './submission.ts';

const RunBody = Type.Object(
  { variables: Type.Optional(Type.Object({}, { additionalProperties: true })) },
  { additionalProperties: false },
);
const parseRunBody = createParser(RunBody, 'body', 'INVALID_PARAMETERS');

const CALLER_BYTES = 16;

/** Programs: keep and run (specification, "Programs"). */
export async function programRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  readBodiesAsBytes(app);
  // Compute nodes are told callers apart, and nothing else of them.
  const key = randomBytes(CALLER_BYTES);
  const callerOf = (request: IncomingMessage) =>
    createHmac('sha256', key).update(rooms.standingOf(request).key).digest().toString('hex', 0, CALLER_BYTES);

  app.post(
    '/programs',
    {
      schema: { summary: 'Keep a program (signed PROGRAM)', response: submissionViews },
      config: takesSigned({ type: 'PROGRAM', content: ProgramContent }, 'MESSAGE_FORGOTTEN'),
    },
    async (request, reply) =>
      answerSubmitted(reply, await submitBody(rooms, request.body, { type: 'PROGRAM' })),
  );

  app.post(
    '/run/:program_hash',
    {
      schema: {
        summary: 'Run a program',
        params: Type.Object({ program_hash: Type.String() }),
        response: {
          200: {
            description: 'whatever the program answers; its status and its type as well',
            content: { '*/*': { schema: {} } },
          },
        },
      },
      config: takesBody(
        'heavy',
        { contentType: 'application/json', schema: RunBody },
        'INVALID_HASH',
        'INVALID_PARAMETERS',
        'UNKNOWN_FIELD',
        'PROGRAM_NOT_FOUND',
        'NO_RUNNER',
        'OVERLOADED',
        'PROGRAM_UNSUPPORTED',
        'PROGRAM_FAILED',
        'PROGRAM_CRASHED',
        'PROGRAM_OUTPUT_TOO_LARGE',
        'PROGRAM_TIMED_OUT',
      ),
    },
    async (request, reply) => {
      const { hash } = parseMessageHash(request.params.program_hash);
      const body = request.body as Buffer | undefined;
      const { variables = {} } = body && body.length > 0 ? parseRunBody(scanJsonObject(body).value) : {};
      const stored = await getProgram(rooms.db, hash);
      const output = await forwardRun(await rooms.listRunners(), stored, variables, {
        ...rooms.forwarding,
        caller: callerOf(request.raw),
      });
      // Bytes of strangers, as files are: no page that this node serves.
      reply.headers({
        'content-security-policy': 'sandbox',
        'x-content-type-options': 'nosniff',
        'net-program-outcome': 'answered',
      });
      return reply
        .status(output.status as 200)
        .type(output.contentType)
        .send(output.body);
    },
  );
}
