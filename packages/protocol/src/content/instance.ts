import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { HASH64_PATTERN } from '../network-form/item-hash.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import { OnBehalfOf, PRINTABLE } from './on-behalf.ts';
import { INSTANCE_SIZES } from './sizes.ts';

const strict = { additionalProperties: false } as const;

const ports = (description: string) =>
  Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }), {
    maxItems: LIMITS.instancePortsMax,
    uniqueItems: true,
    description,
  });

export const Firewall = Type.Object(
  {
    allowedPorts: ports('TCP ports that anyone may reach; ICMPv6 and replies always pass'),
    allowedUdpPorts: Type.Optional(ports('UDP ports that anyone may reach; none where left out')),
    proxyProtocol: Type.Optional(
      Type.Boolean({
        description:
          'whether TLS connections that come through a gateway begin with a header of the PROXY protocol, version 2, which names the client',
      }),
    ),
  },
  strict,
);
export type Firewall = Static<typeof Firewall>;

/** What an instance has when its message names no firewall: reachable by ssh, nothing else. */
export const DEFAULT_FIREWALL: Firewall = { allowedPorts: [22] };

const Name = Type.String({ minLength: 1, maxLength: LIMITS.instanceNameChars, pattern: PRINTABLE });
const Description = Type.String({ maxLength: LIMITS.instanceDescriptionChars });
const InstanceId = Type.String({ pattern: HASH64_PATTERN });

/** What a disk is made of: what nodes build by name, or a disk that is stored on the network. */
export const ImageName = Type.String({
  maxLength: LIMITS.imageNameChars,
  pattern: '^([a-z0-9][a-z0-9._-]*(:[A-Za-z0-9._-]+)?|Qm[1-9A-HJ-NP-Za-km-z]{42,44})$',
  description: 'image name such as debian:12, or the hash of the message that stored an image',
});

/** INSTANCE (specification, "Instances"; units of docs/decisions.md 13). */
export const InstanceContent = Type.Object(
  {
    name: Name,
    description: Type.Optional(Description),
    cpu: Type.Integer({ ...INSTANCE_SIZES.cpu, description: 'virtual cores' }),
    memory: Type.Integer({ ...INSTANCE_SIZES.memory, description: 'MiB' }),
    disk: Type.Integer({ ...INSTANCE_SIZES.disk, description: 'GiB' }),
    image: ImageName,
    ssh_key: Type.String({ maxLength: LIMITS.sshKeyChars, description: 'one public key in OpenSSH format' }),
    firewall: Type.Optional(Firewall),
    address: Type.Optional(OnBehalfOf),
  },
  strict,
);
export type InstanceContent = Static<typeof InstanceContent>;

/** INSTANCE_UPDATE. Fields that are left out stay as they are. */
export const InstanceUpdateContent = Type.Object(
  {
    instance_id: InstanceId,
    name: Type.Optional(Name),
    description: Type.Optional(Description),
    firewall: Type.Optional(Firewall),
  },
  strict,
);
export type InstanceUpdateContent = Static<typeof InstanceUpdateContent>;

/** INSTANCE_CONTROL. */
export const InstanceControlContent = Type.Object(
  {
    instance_id: InstanceId,
    action: Type.Union([Type.Literal('start'), Type.Literal('stop'), Type.Literal('restart')]),
  },
  strict,
);
export type InstanceControlContent = Static<typeof InstanceControlContent>;

const SSH_KEY_TYPE =
  '(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-ssh-ed25519@openssh\\.com|sk-ecdsa-sha2-nistp256@openssh\\.com)';
const SSH_KEY = new RegExp(`^${SSH_KEY_TYPE} [A-Za-z0-9+/]{16,}={0,3}(?: [\\x20-\\x7e]*)?$`);

export const isSshKey = (text: string): boolean => SSH_KEY.test(text.trim());

/** One public key in OpenSSH's one-line format, trimmed. A key with a line break could smuggle lines into a guest's files. */
export function parseSshKey(text: string): string {
  const key = text.trim();
  if (!isSshKey(key)) {
    throw new AppError(
      'INVALID_SSH_KEY',
      'ssh_key must be one public key line, such as "ssh-ed25519 AAAA... name"',
    );
  }
  return key;
}

const parseShape = createParser(InstanceContent, 'content');

/** @param mayLackKey whether an empty `ssh_key` is taken: nobody can log in then but by what the image brings */
export function parseInstanceContent(value: unknown, mayLackKey = false): InstanceContent {
  const content = parseShape(value);
  if (!(mayLackKey && content.ssh_key === '')) parseSshKey(content.ssh_key);
  return content;
}

export const parseInstanceUpdateContent = createParser(InstanceUpdateContent, 'content');
export const parseInstanceControlContent = createParser(InstanceControlContent, 'content');
