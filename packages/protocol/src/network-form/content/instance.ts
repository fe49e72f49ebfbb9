import { ImageName } from '../../content/instance.ts';
import { AppError } from '../../errors.ts';
import { createParser } from '../../schema.ts';
import { type Static, Type } from '../../type.ts';
import { AnyHash, Maybe, oneOf, strict } from './base.ts';
import { checkMachine, environmentFlags, fileRef, machine, PersistentSizeMib } from './machine.ts';

export const NetworkInstanceContent = Type.Object(
  {
    ...machine,
    rootfs: Type.Object(
      {
        // Beside what deployed nodes take: an image by its name.
        parent: Type.Object({ ...fileRef, ref: ImageName }, strict),
        persistence: Maybe(oneOf('host', 'store')),
        size_mib: PersistentSizeMib,
      },
      strict,
    ),
    environment: Type.Object(
      {
        ...environmentFlags,
        hypervisor: Maybe(oneOf('qemu', 'firecracker')),
        trusted_execution: Maybe(
          Type.Object({ firmware: Maybe(AnyHash), policy: Type.Optional(Type.Integer()) }, strict),
        ),
      },
      strict,
    ),
  },
  strict,
);
export type NetworkInstanceContent = Static<typeof NetworkInstanceContent>;

const parseShape = createParser(NetworkInstanceContent, 'content');

const expect = (condition: boolean, sentence: string) => {
  if (!condition) throw new AppError('INVALID_CONTENT', sentence);
};

/** What deployed nodes ask of fields that depend on each other. */
export function parseNetworkInstanceContent(value: unknown): NetworkInstanceContent {
  const content = parseShape(value);
  checkMachine(content);
  const { environment, requirements } = content;
  const payment = content.payment?.type ?? 'hold';
  const isQemu = environment.hypervisor === 'qemu';
  const isTrusted = Boolean(environment.trusted_execution);
  expect(!isTrusted || isQemu, 'content.environment.trusted_execution needs the hypervisor qemu');
  if (!requirements) return content;
  const node = requirements.node;
  expect(
    payment === 'hold' || Boolean(node?.node_hash),
    `content.requirements with payment ${payment} needs node.node_hash`,
  );
  if (requirements.gpu?.length) {
    expect(
      Boolean(node?.node_hash) && isQemu,
      'content.requirements.gpu needs node.node_hash and the hypervisor qemu',
    );
  }
  if (node?.terms_and_conditions) {
    expect(
      Boolean(node.node_hash) && (payment !== 'hold' || isTrusted),
      'content.requirements.node.terms_and_conditions needs node_hash, and a payment by superfluid or credit or trusted execution',
    );
  }
  return content;
}
