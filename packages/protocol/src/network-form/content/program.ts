import { createParser } from '../../schema.ts';
import { type Static, Type } from '../../type.ts';
import { FreeObject, Label, Maybe, oneOf, strict, Text } from './base.ts';
import { checkMachine, environmentFlags, fileRef, machine } from './machine.ts';

const Encoding = oneOf('plain', 'zip', 'squashfs');

export const NetworkProgramContent = Type.Object(
  {
    ...machine,
    type: Type.Literal('vm-function'),
    code: Type.Object(
      {
        ...fileRef,
        encoding: Encoding,
        entrypoint: Type.String({ maxLength: 1024 }),
        interface: Maybe(oneOf('asgi', 'binary')),
        args: Maybe(Type.Array(Type.String({ maxLength: 4096 }), { maxItems: 256 })),
      },
      strict,
    ),
    runtime: Type.Object({ ...fileRef, comment: Maybe(Text) }, strict),
    data: Maybe(Type.Object({ ...fileRef, encoding: Encoding, mount: Label }, strict)),
    export: Maybe(Type.Object({ encoding: Encoding, mount: Label }, strict)),
    on: Type.Object(
      {
        http: Type.Boolean(),
        message: Maybe(Type.Array(FreeObject, { maxItems: 256 })),
        persistent: Maybe(Type.Boolean()),
      },
      strict,
    ),
    environment: Type.Object(environmentFlags, strict),
  },
  strict,
);
export type NetworkProgramContent = Static<typeof NetworkProgramContent>;

const parseShape = createParser(NetworkProgramContent, 'content');

export function parseNetworkProgramContent(value: unknown): NetworkProgramContent {
  const content = parseShape(value);
  checkMachine(content);
  return content;
}
