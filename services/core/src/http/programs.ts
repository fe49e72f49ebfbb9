import type { HttpServer } from '@skerry/kit';
import { AppError, createParser, ProgramContent, parseMessageHash, scanJsonObject } from '@skerry/protocol';
import Type from 'typebox';
import { getProgram } from '../programs/read.ts';
import { takesBody, takesSigned } from './declare.ts';
import type { Rooms } from './rooms.ts';
import { answerSubmitted, readBodiesAsBytes, submissionViews, submitBody } from './submission.ts';

const RunBody = Type.Object(
  { variables: Type.Optional(Type.Object({}, { additionalProperties: true })) },
  { additionalProperties: false },
);
const parseRunBody = createParser(RunBody, 'body', 'INVALID_PARAMETERS');

/** Programs: keep and run (specification, "Programs"). */
export async function programRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  readBodiesAsBytes(app);

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
        response: { 200: Type.Unknown({ description: 'whatever the program answers' }) },
      },
      config: takesBody(
        'heavy',
        { contentType: 'application/json', schema: RunBody },
        'INVALID_HASH',
        'INVALID_PARAMETERS',
        'UNKNOWN_FIELD',
        'PROGRAM_NOT_FOUND',
        'NO_RUNNER',
      ),
    },
    async (request) => {
      const { hash } = parseMessageHash(request.params.program_hash);
      const body = request.body as Buffer | undefined;
      if (body && body.length > 0) parseRunBody(scanJsonObject(body).value);
      const { program } = await getProgram(rooms.db, hash);
      // Compute nodes announce `programs` among their features once they can run them.
      throw new AppError(
        'NO_RUNNER',
        `no compute node of this network runs programs yet, such as ${program.name}`,
      );
    },
  );
}
