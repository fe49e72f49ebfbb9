import { DAY, SINGLE_LABELS, TAG_LABEL } from '../../services/core/src/state/lists/labels.ts';
import { LABELLED, TAG_COLUMNS } from '../../services/core/src/state/lists/properties.ts';

const namesOf = (columns: readonly string[]) => columns.map((column) => `"${column}"`).join(', ');
/** What labels are made of. */
const LISTED_COLUMNS = [
  'item_hash',
  'time',
  ...LABELLED.filter(({ many }) => !many).map(({ column }) => column),
];

/** What the pipeline would have written beside the messages themselves, derived from them in SQL. Statements in order. */
export const deriveStatements = (heavyFrom: number): readonly (readonly [what: string, sql: string])[] => [
  [
    'message_tags',
    `insert into message_tags (tag, ${namesOf(TAG_COLUMNS)})
     select tag, ${namesOf(TAG_COLUMNS)} from messages, unnest(tags) as tag
     where status = 'processed' and tags <> '{}'`,
  ],
  [
    'amended_posts',
    `insert into amended_posts (item_hash, owner, type, ref, channel, tags, updated, latest_hash)
     select m.item_hash, m.owner, m.content_type, m.subject, m.channel, m.tags, a."time", a.item_hash
     from messages m join (
       select distinct on (subject) subject, "time", item_hash from messages
       where status = 'processed' and content_type = 'amend' order by subject, "time" desc, item_hash desc
     ) a on a.subject = m.item_hash
     where m.status = 'processed' and m.type = 'POST' and m.content_type <> 'amend'`,
  ],
  [
    'aggregates',
    `insert into aggregates (owner, key, created, "time", item_hash)
     select distinct on (owner, key) owner, key, min("time") over (partition by owner, key), "time", item_hash
     from (select owner, content ->> 'key' as key, "time", item_hash from messages
       where status = 'processed' and type = 'AGGREGATE') m
     order by owner, key, "time" desc, item_hash desc`,
  ],
  [
    'aggregate_entries',
    `insert into aggregate_entries (owner, key, field, value, "time", item_hash)
     select distinct on (owner, m.content ->> 'key', f.key) owner, m.content ->> 'key', f.key, f.value, "time", item_hash
     from messages m, jsonb_each(m.content -> 'content') f
     where status = 'processed' and type = 'AGGREGATE'
     order by owner, m.content ->> 'key', f.key, "time" desc, item_hash desc`,
  ],
  [
    'aggregate_covered',
    `insert into aggregate_covered (owner, key, field, value, "time", item_hash)
     select m.owner, m.content ->> 'key', f.key, f.value, m."time", m.item_hash
     from messages m cross join lateral jsonb_each(m.content -> 'content') f
     where status = 'processed' and type = 'AGGREGATE' and not exists (
       select from aggregate_entries e where e.owner = m.owner and e.key = m.content ->> 'key' and e.field = f.key
         and e.item_hash = m.item_hash)`,
  ],
  [
    'instances',
    `insert into instances (instance_id, owner, name, description, cpu, memory_mib, disk_gib, image, ssh_key, firewall,
       desired, ipv6, phase, reason, created_at, effective_at, updated_at, stamps)
     select item_hash, owner, content ->> 'name', '', 1, 512, 4, content ->> 'image', content ->> 'ssh_key',
       '{"allowedPorts": [22]}', 'running', '',
       case when hashtext(item_hash) % 3 = 0 then 'running' else 'scheduled' end, null,
       "time", "time", "time", '{"name": null, "description": null, "firewall": null, "desired": null, "restart": null, "allocation": null, "address": null, "status": null}'
     from messages where status = 'processed' and type = 'INSTANCE'`,
  ],
  ...totalStatements(heavyFrom),
];

/** Totals by the rule of state/lists/totals.ts, for messages of which none ever left the lists of a label that was heavy before. */
function totalStatements(heavyFrom: number): (readonly [string, string])[] {
  const tag = TAG_LABEL.letter;
  return [
    [
      'what is listed, without contents',
      `create temp table listed as select ${namesOf(LISTED_COLUMNS)} from messages where status = 'processed'`,
    ],
    [
      'what is tagged',
      `create temp table tagged as select tag, l.* from message_tags g join listed l using (item_hash)`,
    ],
    ['total of all', `insert into totals (a, b, total) select '', '', count(*) from listed`],
    ...SINGLE_LABELS.map(
      ({ letter, label }) =>
        [
          `totals of ${letter}`,
          `insert into totals (a, b, total, heavy)
           select label, '', count(*), ${letter === DAY ? 'false' : `count(*) >= ${heavyFrom}`}
           from (select ${label} as label from listed) l where label is not null group by label`,
        ] as const,
    ),
    [
      `totals of ${tag}`,
      `insert into totals (a, b, total, heavy)
       select label, '', count(*), count(*) >= ${heavyFrom}
       from (select ${TAG_LABEL.label} as label from tagged) l group by label`,
    ],
    [
      'what is heavy',
      `create temp table heavy_labels as select a from totals where heavy; analyze heavy_labels, listed, tagged`,
    ],
    ...pairStatements(),
    ['leftovers', 'drop table listed, tagged, heavy_labels'],
  ];
}

/** Totals of two labels together, of heavy ones alone. */
function pairStatements(): (readonly [string, string])[] {
  const heavy = (label: string) =>
    `(left(${label}, 1) = '${DAY}' or ${label} in (select a from heavy_labels))`;
  const pairs = SINGLE_LABELS.flatMap((x, index) =>
    SINGLE_LABELS.slice(index + 1).map((y) => ({
      name: `${x.letter} and ${y.letter}`,
      a: x.label,
      b: y.label,
    })),
  );
  const tag = TAG_LABEL.letter;
  return [
    ...pairs.map(
      ({ name, a, b }) =>
        [
          `totals of ${name}`,
          `insert into totals (a, b, total)
           select least(x collate "C", y collate "C"), greatest(x collate "C", y collate "C"), count(*)
           from (select ${a} as x, ${b} as y from listed) l
           where ${heavy('x')} and ${heavy('y')} group by x, y`,
        ] as const,
    ),
    ...SINGLE_LABELS.map(
      ({ letter, label }) =>
        [
          `totals of ${tag} and ${letter}`,
          `insert into totals (a, b, total)
           select least(x collate "C", y collate "C"), greatest(x collate "C", y collate "C"), count(*)
           from (select ${TAG_LABEL.label} as x, ${label} as y from tagged) l
           where ${heavy('x')} and ${heavy('y')} group by x, y`,
        ] as const,
    ),
  ];
}
