import { AppError } from '@skerry/protocol';

/** One line of the QEMU Machine Protocol (docs/interop/qmp-spec of QEMU). */
export type QmpMessage =
  | { readonly kind: 'greeting' }
  | { readonly kind: 'event'; readonly name: string; readonly data: Readonly<Record<string, unknown>> }
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'error'; readonly id: number | undefined; readonly description: string };

/** No answer that we ask for comes near it; a longer one is not QMP. */
const LINE_LIMIT_CHARS = 4 * 1024 * 1024;

/** Turns bytes, however they are cut, into messages. Throws INTERNAL for what is not QMP. */
export class QmpParser {
  readonly #decoder = new TextDecoder();
  #rest = '';

  push(bytes: Uint8Array): QmpMessage[] {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split('\n');
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > LINE_LIMIT_CHARS)
      throw new AppError('INTERNAL', 'QEMU sent a line that is too long');
    return lines.flatMap((line) => (line.trim() === '' ? [] : [parseQmpLine(line)]));
  }
}

export function parseQmpLine(line: string): QmpMessage {
  const message = parseObject(line);
  if ('QMP' in message) return { kind: 'greeting' };
  if (typeof message.event === 'string')
    return { kind: 'event', name: message.event, data: recordOf(message.data) };
  const id = typeof message.id === 'number' ? message.id : undefined;
  if ('error' in message) {
    const { desc } = recordOf(message.error);
    return { kind: 'error', id, description: typeof desc === 'string' ? desc : 'unknown error' };
  }
  if ('return' in message && id !== undefined) return { kind: 'result', id, value: message.return };
  throw new AppError('INTERNAL', 'QEMU sent something that is not QMP');
}

export function encodeQmpCommand(
  id: number,
  execute: string,
  args?: Readonly<Record<string, unknown>>,
): string {
  return `${JSON.stringify({ execute, ...(args ? { arguments: args } : {}), id })}\n`;
}

function parseObject(line: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch (error) {
    throw new AppError('INTERNAL', 'QEMU sent something that is not JSON', { cause: error });
  }
  throw new AppError('INTERNAL', 'QEMU sent something that is not a JSON object');
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
