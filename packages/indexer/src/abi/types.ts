/** A Solidity type as an event uses it (Contract ABI specification, "Types"). */
export type AbiType =
  | { readonly kind: 'uint' | 'int'; readonly bits: number }
  | { readonly kind: 'address' | 'bool' | 'bytes' | 'string' }
  | { readonly kind: 'fixed_bytes'; readonly sizeBytes: number }
  /** `length` null: as many as there are. */
  | { readonly kind: 'array'; readonly of: AbiType; readonly length: number | null }
  | { readonly kind: 'tuple'; readonly fields: readonly AbiField[] };

export interface AbiField {
  /** Never empty: a parameter without a name is called after its place, `arg0`. */
  readonly name: string;
  readonly type: AbiType;
}

export interface EventParameter extends AbiField {
  readonly indexed: boolean;
}

/** An event of a contract's ABI. Plain data: it is stored, and sent to worker threads. */
export interface EventDefinition {
  readonly name: string;
  readonly anonymous: boolean;
  readonly parameters: readonly EventParameter[];
}

export const ABI_LIMITS = {
  eventsPerAbi: 256,
  /** In one owner's ABI of one contract. */
  eventsPerOwner: 512,
  /** Of all contracts, that one owner has declared and the settings have not: nobody takes up what there is for all. */
  eventsOfOneOwner: 1_024,
  /** Of all contracts, that owners have declared and the settings have not: each look at a chain goes through them. */
  eventsOfOwners: 8_192,
  parametersPerEvent: 64,
  typeDepth: 8,
  nameChars: 128,
  /** As somebody wrote it. */
  writtenChars: 8192,
  /** As it is stored: the database finds declarations by an index, whose rows are of 2,704 bytes at most. */
  declarationChars: 2_560,
  arrayLength: 1024,
} as const;

/** `uint256`, `(address,uint8[2])[]`: what a signature is hashed from. */
function canonicalType(type: AbiType): string {
  switch (type.kind) {
    case 'uint':
    case 'int':
      return `${type.kind}${type.bits}`;
    case 'fixed_bytes':
      return `bytes${type.sizeBytes}`;
    case 'array':
      return `${canonicalType(type.of)}[${type.length ?? ''}]`;
    case 'tuple':
      return `(${type.fields.map((field) => canonicalType(field.type)).join(',')})`;
    default:
      return type.kind;
  }
}

/** `Transfer(address,address,uint256)`. */
export function signatureOf(event: EventDefinition): string {
  return `${event.name}(${event.parameters.map(({ type }) => canonicalType(type)).join(',')})`;
}

/** The whole of it in one line: two events are the same exactly if these are. */
export function declarationOf(event: EventDefinition): string {
  const parameters = event.parameters.map(
    ({ type, indexed, name }) => `${declaredType(type)}${indexed ? ' indexed' : ''} ${name}`,
  );
  return `event ${event.name}(${parameters.join(', ')})${event.anonymous ? ' anonymous' : ''}`;
}

function declaredType(type: AbiType): string {
  if (type.kind === 'array') return `${declaredType(type.of)}[${type.length ?? ''}]`;
  if (type.kind !== 'tuple') return canonicalType(type);
  return `(${type.fields.map((field) => `${declaredType(field.type)} ${field.name}`).join(', ')})`;
}

/** Types whose indexed form is a hash and not the value (Contract ABI specification, "Events"). */
export const isHashedWhenIndexed = (type: AbiType): boolean =>
  type.kind === 'string' || type.kind === 'bytes' || type.kind === 'array' || type.kind === 'tuple';
