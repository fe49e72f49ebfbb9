/** A volume that a machine's message asks for beside its disk. */
export interface Volume {
  /** Of a file, which never changes; kept beside the disk; or gone whenever the machine ends. */
  readonly kind: 'file' | 'kept' | 'passing';
  /** Where the machine finds it; null: by its number alone. */
  readonly mount: string | null;
  readonly name: string | null;
  /** Null where the file says it. */
  readonly sizeMib: number | null;
  /** The message of the file that it is, or begins as. */
  readonly file: string | null;
}

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : null);
const sizeOf = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : null);

function volumeOf(told: unknown): Volume {
  const { mount, name, ephemeral, size_mib: size, ref, parent } = fieldsOf(told);
  const common = { mount: textOf(mount), name: textOf(name), sizeMib: sizeOf(size) };
  if (textOf(ref) !== null) return { ...common, kind: 'file', file: textOf(ref) };
  if (ephemeral === true) return { ...common, kind: 'passing', file: null };
  return { ...common, kind: 'kept', file: textOf(fieldsOf(parent).ref) };
}

/** @param content of a message of the network form; messages of other forms ask for none */
export function volumesOf(content: unknown): readonly Volume[] {
  const { volumes } = fieldsOf(content);
  return Array.isArray(volumes) ? volumes.map(volumeOf) : [];
}
