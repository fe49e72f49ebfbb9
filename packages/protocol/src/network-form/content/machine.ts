import { AppError } from '../../errors.ts';
import { type Static, Type } from '../../type.ts';
import { AnyHash, FreeObject, head, Label, Maybe, oneOf, paymentBy, strict, Text } from './base.ts';

/** What PROGRAM and INSTANCE have in common. */

const Flag = Type.Optional(Type.Boolean());
const Port = Type.Integer({ minimum: 1, maximum: 65535 });
export const PersistentSizeMib = Type.Integer({ minimum: 1, maximum: 1_953_125 });

/** A file by its message. `use_latest` follows later versions of it. */
export const fileRef = { ref: AnyHash, use_latest: Flag };

const place = { mount: Maybe(Label), comment: Maybe(Text) };

const AnyVolume = Type.Union([
  Type.Object({ ...fileRef, ...place }, strict),
  Type.Object(
    { ephemeral: Type.Literal(true), size_mib: Type.Integer({ minimum: 1, maximum: 1000 }), ...place },
    strict,
  ),
  Type.Object(
    {
      parent: Maybe(Type.Object(fileRef, strict)),
      persistence: Maybe(oneOf('host', 'store')),
      name: Maybe(Label),
      size_mib: PersistentSizeMib,
      ...place,
    },
    strict,
  ),
]);

export type NetworkVolume = Static<typeof AnyVolume>;

const Resources = Type.Object(
  {
    vcpus: Type.Optional(Type.Integer({ minimum: 1, maximum: 256 })),
    memory: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_048_576, description: 'MiB' })),
    seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 315_360_000 })),
    published_ports: Maybe(
      Type.Array(Type.Object({ protocol: oneOf('tcp', 'udp'), port: Port }, strict), { maxItems: 256 }),
    ),
  },
  strict,
);

const Requirements = Type.Object(
  {
    cpu: Maybe(
      Type.Object(
        {
          architecture: Maybe(oneOf('x86_64', 'arm64')),
          vendor: Maybe(Label),
          features: Maybe(Type.Array(Label, { maxItems: 256 })),
        },
        strict,
      ),
    ),
    node: Maybe(
      Type.Object(
        {
          owner: Maybe(Label),
          // Kept as text and never run: a stranger's pattern may take for ever, and regular expressions differ by language.
          address_regex: Maybe(Type.String({ maxLength: 256 })),
          node_hash: Maybe(AnyHash),
          terms_and_conditions: Maybe(Label),
        },
        strict,
      ),
    ),
    gpu: Maybe(
      Type.Array(
        Type.Object(
          { vendor: Label, device_name: Label, device_class: oneOf('0300', '0302'), device_id: Label },
          strict,
        ),
        { maxItems: 256 },
      ),
    ),
  },
  strict,
);

export const machine = {
  ...head,
  allow_amend: Type.Boolean(),
  // Some clients write an empty object as an empty list.
  metadata: Maybe(Type.Union([FreeObject, Type.Array(Type.Unknown(), { maxItems: 0 })])),
  authorized_keys: Maybe(Type.Array(Type.String({ maxLength: 8192 }), { maxItems: 256 })),
  variables: Maybe(Type.Record(Type.String(), Type.String({ maxLength: 4096 }), { maxProperties: 256 })),
  resources: Resources,
  payment: Maybe(paymentBy('hold', 'superfluid', 'credit')),
  requirements: Maybe(Requirements),
  volumes: Type.Optional(Type.Array(AnyVolume, { maxItems: 256 })),
  replaces: Maybe(Type.String({ maxLength: 128 })),
};

export const environmentFlags = { reproducible: Flag, internet: Flag, aleph_api: Flag, shared_cache: Flag };

/** What a deployed machine has where its message says nothing. */
export const MACHINE_DEFAULTS = { vcpus: 1, memoryMib: 128, seconds: 1 } as const;

const MachineContent = Type.Object(machine);
type MachineContent = Static<typeof MachineContent>;

const VARIABLE_NAME_CHARS = 128;

/** What a schema cannot say about both. */
export function checkMachine(content: MachineContent): void {
  for (const name of Object.keys(content.variables ?? {})) {
    if (name.length > VARIABLE_NAME_CHARS) {
      throw new AppError(
        'INVALID_CONTENT',
        `a name in content.variables is longer than ${VARIABLE_NAME_CHARS} characters`,
      );
    }
  }
}
