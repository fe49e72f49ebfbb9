import { messageElement, type SetSum } from '@skerry/protocol';
import { shapeKeyOf } from '../../services/core/src/state/lists/shape.ts';
import { type DataSet, type MadeMessage, makeMessage } from './data-set.ts';

/** Columns of `messages` that are copied, in the order of rowOf. */
export const COPIED = [
  ...['item_hash', 'form', 'chain', 'sender', 'owner', 'type', 'channel', 'time', 'content_type', 'subject'],
  ...[
    'tags',
    'shape',
    'content',
    'source_text',
    'signature',
    'status',
    'reason',
    'decide_by_ms',
    'settled_at_ms',
  ],
];

const NULL = '\\N';
const escaped = (text: string) =>
  /[\\\n\t\r]/.test(text)
    ? text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\t', '\\t').replaceAll('\r', '\\r')
    : text;
const field = (text: string | null) => (text === null ? NULL : escaped(text));

/** As the pipeline says of a message that was forgotten. */
const reasonOf = (forgottenBy: string | null) =>
  forgottenBy === null
    ? null
    : JSON.stringify({ code: 'MESSAGE_FORGOTTEN', message: `forgotten by ${forgottenBy}` });

/** The shapes of a data set, numbered in order of appearance. */
export class ShapeNumbers {
  readonly keys: string[] = [];
  readonly #byKey = new Map<string, number>();
  readonly #byForm = new Map<string, number>();

  numberOf({ message, contentType }: MadeMessage): number {
    // Equal members, equal shape: spares most of the walks.
    const content = message.content as Record<string, unknown>;
    const inner = content.content as Record<string, unknown> | undefined;
    const form = `${message.type} ${contentType} ${Object.keys(content)} ${inner && Object.keys(inner)}`;
    const known = this.#byForm.get(form);
    if (known !== undefined) return known;
    const key = shapeKeyOf({ type: message.type, contentType, content: message.content! });
    let number = this.#byKey.get(key);
    if (number === undefined) {
      this.keys.push(key);
      number = this.keys.length;
      this.#byKey.set(key, number);
    }
    // Arrays of the data set are never empty, and hold texts alone.
    this.#byForm.set(form, number);
    return number;
  }
}

const statusOf = ({ forgottenBy }: MadeMessage) => (forgottenBy === null ? 'processed' : 'forgotten');

function rowOf(made: MadeMessage, shape: number): string {
  const { message, contentType, subject, tags, forgottenBy } = made;
  return `${[
    message.itemHash,
    message.form,
    message.chain,
    message.sender,
    message.sender,
    message.type,
    field(message.channel),
    String(message.time),
    field(contentType),
    field(subject),
    `{${tags.join(',')}}`,
    String(shape),
    escaped(JSON.stringify(message.content)),
    field(message.sourceText),
    message.signature,
    statusOf(made),
    field(reasonOf(forgottenBy)),
    '0',
    '0',
  ].join('\t')}\n`;
}

const ROWS_PER_CHUNK = 1_000;

/** The rows of `messages` in COPY's text form. @param sum takes each of them */
export async function* listRows(
  set: DataSet,
  shapes: ShapeNumbers,
  sum: SetSum,
  onProgress: (written: number) => void,
): AsyncGenerator<string> {
  for (let from = 0; from < set.count; from += ROWS_PER_CHUNK) {
    let chunk = '';
    for (let index = from; index < Math.min(set.count, from + ROWS_PER_CHUNK); index++) {
      const made = makeMessage(set, index);
      chunk += rowOf(made, shapes.numberOf(made));
      sum.add(messageElement(made.message.itemHash, statusOf(made))!);
    }
    yield chunk;
    onProgress(Math.min(set.count, from + ROWS_PER_CHUNK));
  }
}
