import type { MessageHeader } from '../data/answers.ts';
import { readMessageHeaders } from '../data/answers.ts';
import { messageLink } from '../data/network.ts';
import { route } from '../data/place.ts';
import { useCore } from '../data/questions.ts';
import { zone } from '../data/settings.ts';
import { type Check, type TellableMessage, useChecks } from '../data/trust/checks.ts';
import { Hash, Panel, ProofMark, Safe, Time } from '../parts/basic.tsx';
import { LiveList } from '../parts/live-list.tsx';
import { Pages, pageOf } from '../parts/pages.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, SortTable } from '../parts/table.tsx';
import { count } from '../pure/format.ts';
import { LISTED_ALONE, messageQuery } from '../pure/queries/message-query.ts';
import { linkTo } from '../pure/route.ts';

const TYPES = [
  ...['POST', 'AGGREGATE', 'STORE', 'FORGET', 'PROGRAM'],
  ...['INSTANCE', 'INSTANCE_UPDATE', 'INSTANCE_CONTROL'],
];
const SHOWN = 50;
const HASH = /^[0-9a-f]{64}$/i;

const columnsOf = (checkOf: (row: TellableMessage) => Check): readonly Column<MessageHeader>[] => [
  {
    name: 'proof',
    title: 'Signed',
    sort: (row) => checkOf(row).mark,
    cell: (row) => {
      const { mark, failure } = checkOf(row);
      return (
        <span class="stack">
          <ProofMark kind={mark} of="message" message={row.item_hash} why={failure} />
          {failure === undefined ? null : (
            <span class="wrong">
              <Safe text={failure} limit={200} />
            </span>
          )}
        </span>
      );
    },
  },
  { name: 'time', title: 'When', sort: ({ time }) => -time, cell: ({ time }) => <Time ms={time * 1_000} /> },
  {
    name: 'type',
    title: 'Type',
    sort: (row) => checkOf(row).postType ?? row.type,
    cell: (row) => <Safe text={checkOf(row).postType ?? row.type} limit={32} />,
  },
  {
    name: 'hash',
    title: 'Message',
    cell: ({ item_hash: hash }) => <Hash value={hash} href={messageLink(hash)} />,
  },
  {
    name: 'sender',
    title: 'Sender',
    sort: ({ sender }) => sender,
    cell: ({ sender }) => <Hash value={sender} href={linkTo(['messages'], { sender })} />,
  },
  {
    name: 'channel',
    title: 'Channel',
    sort: ({ channel }) => channel,
    cell: ({ channel }) =>
      channel === null ? (
        '–'
      ) : (
        <a href={linkTo(['messages'], { channel })}>
          <Safe text={channel} limit={32} />
        </a>
      ),
  },
];

/** Goes where the reader asked, also to one message by its hash. */
function ask(form: HTMLFormElement): void {
  const given = Object.fromEntries(
    [...new FormData(form)].map(([name, value]) => [name, String(value).trim()]),
  );
  const { hash = '', ...query } = given;
  location.hash = HASH.test(hash) ? messageLink(hash.toLowerCase()) : linkTo(['messages'], query);
}

const MORE = [
  { name: 'content', title: 'Type of a post', placeholder: 'net-scoring-scores' },
  { name: 'names', title: 'Names this hash', placeholder: 'of a machine, a file, a message' },
  { name: 'owner', title: 'On behalf of', placeholder: '0x…' },
  { name: 'file', title: 'Keeps this file', placeholder: 'its hash' },
  { name: 'key', title: 'Key of an aggregate', placeholder: 'domains' },
  { name: 'tag', title: 'Tag', placeholder: '' },
  { name: 'chain', title: 'Chain of the sender', placeholder: 'ETH' },
  { name: 'fromBlock', title: 'Confirmed from block', placeholder: '' },
  { name: 'toBlock', title: 'Confirmed before block', placeholder: '' },
] as const;
const CHOICES = [
  {
    name: 'status',
    title: 'Status',
    all: {
      '': 'in force',
      pending: 'pending',
      rejected: 'rejected',
      forgotten: 'forgotten',
      removed: 'removed',
    },
  },
  {
    name: 'payment',
    title: 'Paid by',
    all: { '': 'whatever', hold: 'holding', superfluid: 'a stream', credit: 'credit' },
  },
] as const;
const MOMENTS = [
  { name: 'from', title: 'Dated from' },
  { name: 'to', title: 'Dated before' },
] as const;

/** By these, the list is filtered, and not what comes live. */
function MoreFilters({ query }: { readonly query: Readonly<Record<string, string>> }) {
  return (
    <details class="more-filters" open={LISTED_ALONE.some((name) => query[name])}>
      <summary>more, for the list</summary>
      <div class="filters">
        {MORE.map(({ name, title, placeholder }) => (
          <label key={name}>
            {title}
            <input
              name={name}
              defaultValue={query[name] ?? ''}
              autocomplete="off"
              spellcheck={false}
              placeholder={placeholder}
            />
          </label>
        ))}
        {CHOICES.map(({ name, title, all }) => (
          <label key={name}>
            {title}
            <select name={name} defaultValue={query[name] ?? ''}>
              {Object.entries(all).map(([value, text]) => (
                <option key={value} value={value} selected={value === (query[name] ?? '')}>
                  {text}
                </option>
              ))}
            </select>
          </label>
        ))}
        {MOMENTS.map(({ name, title }) => (
          <label key={name}>
            {title}
            <input type="datetime-local" name={name} defaultValue={query[name] ?? ''} />
          </label>
        ))}
      </div>
    </details>
  );
}

function Filters({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { type = '', channel = '', sender = '' } = query;
  const isFiltered = ['type', 'channel', 'sender', ...LISTED_ALONE].some((name) => query[name]);
  return (
    <form
      class="filters"
      // Another address begins with its own values.
      key={JSON.stringify(query)}
      onSubmit={(event) => {
        event.preventDefault();
        ask(event.currentTarget);
      }}
    >
      <label>
        Type
        <select
          name="type"
          defaultValue={type}
          value={type}
          onChange={({ currentTarget }) => ask(currentTarget.form!)}
        >
          <option value="">all</option>
          {TYPES.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <label>
        Channel
        <input name="channel" defaultValue={channel} autocomplete="off" spellcheck={false} />
      </label>
      <label>
        Sender
        <input name="sender" defaultValue={sender} autocomplete="off" spellcheck={false} placeholder="0x…" />
      </label>
      <label>
        Hash
        <input name="hash" autocomplete="off" spellcheck={false} placeholder="to one message" />
      </label>
      <button type="submit" class="primary">
        Show
      </button>
      {isFiltered ? <a href={linkTo(['messages'])}>all messages</a> : null}
      <MoreFilters query={query} />
    </form>
  );
}

function Earlier({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const asked = new URLSearchParams({
    ...{ pagination: String(SHOWN), contentFormat: 'none', bodies: 'shared' },
    ...messageQuery(query, zone.value),
  });
  const listed = useCore(`/api/v0/messages.json?${asked}`, readMessageHeaders);
  const checkOf = useChecks(listed.value?.messages ?? []);
  const total = listed.value?.pagination_total ?? undefined;
  return (
    <Panel
      title={query.status ? `Those that are ${query.status}` : 'Those in force'}
      wide
      aside={total === undefined ? '' : `${count(total)}, the newest first`}
    >
      <Loaded from={listed} lines={6}>
        {({ messages }) =>
          messages.length === 0 ? (
            <Empty title={pageOf(query) === 1 ? 'No message fits.' : 'There is no such page.'} />
          ) : (
            <SortTable
              label="messages"
              columns={columnsOf(checkOf)}
              rows={messages}
              keyOf={(row) => row.item_hash}
              first="time"
              isCompact
            />
          )
        }
      </Loaded>
      <Pages size={SHOWN} total={total} />
    </Panel>
  );
}

/** What is said in the network: now, and before. */
export function Messages() {
  const { query } = route.value;
  const { type = '', channel = '', sender = '' } = query;
  return (
    <>
      <h1>Messages</h1>
      <Filters query={query} />
      <div class="panels">
        <Panel title="Now" wide>
          <LiveList filter={{ type, channel, sender }} />
        </Panel>
        <Earlier query={query} />
      </div>
    </>
  );
}
