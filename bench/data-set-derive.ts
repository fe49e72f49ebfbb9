/** What the pipeline would have written beside the messages themselves, derived from them in SQL. Statements in order. */
export const deriveStatements = (heavyFrom: number): readonly (readonly [what: string, sql: string])[] => [
  [
    'message_tags',
    `insert into message_tags (item_hash, tag, type, sender, channel, shape, "time")
     select item_hash, tag, type, sender, channel, shape, "time" from messages, unnest(tags) as tag
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

/** Property -> its label as SQL over `listed`. */
const LABELS: readonly (readonly [property: string, sql: string])[] = [
  ['s', `'s:' || sender`],
  ['t', `'t:' || type`],
  ['c', `'c:' || channel`],
  ['p', `'p:' || content_type`],
  ['k', `'k:' || shape`],
  ['z', `'z:' || lpad(day::text, 6, '0')`],
];

const DAY = `floor("time" / 86400)::bigint`;

/** Totals by the rule of lists/totals.ts, for messages of which none ever left the lists of a label that was heavy before. */
function totalStatements(heavyFrom: number): (readonly [string, string])[] {
  const heavy = (label: string) => `(left(${label}, 1) = 'z' or ${label} in (select a from heavy_labels))`;
  const pairs = LABELS.flatMap(([x, a], index) =>
    LABELS.slice(index + 1).map(([y, b]) => ({ name: `${x} and ${y}`, a, b })),
  );
  return [
    [
      'what is listed, without contents',
      `create temp table listed as
       select item_hash, sender, type, channel, content_type, shape, ${DAY} as day from messages where status = 'processed'`,
    ],
    [
      'what is tagged',
      `create temp table tagged as
       select g.item_hash, tag, g.sender, g.type, g.channel, s.content_type, g.shape, ${DAY} as day
       from message_tags g left join shapes s on s.id = g.shape`,
    ],
    ['total of all', `insert into totals (a, b, total) select '', '', count(*) from listed`],
    ...LABELS.map(
      ([property, sql]) =>
        [
          `totals of ${property}`,
          `insert into totals (a, b, total, heavy)
           select label, '', count(*), ${property === 'z' ? 'false' : `count(*) >= ${heavyFrom}`}
           from (select ${sql} as label from listed) l where label is not null group by label`,
        ] as const,
    ),
    [
      'totals of g',
      `insert into totals (a, b, total, heavy)
       select 'g:' || tag, '', count(*), count(*) >= ${heavyFrom} from tagged group by tag`,
    ],
    [
      'what is heavy',
      `create temp table heavy_labels as select a from totals where heavy; analyze heavy_labels, listed, tagged`,
    ],
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
    ...LABELS.map(
      ([property, sql]) =>
        [
          `totals of g and ${property}`,
          `insert into totals (a, b, total)
           select least(x collate "C", y collate "C"), greatest(x collate "C", y collate "C"), count(*)
           from (select 'g:' || tag as x, ${sql} as y from tagged) l
           where ${heavy('x')} and ${heavy('y')} group by x, y`,
        ] as const,
    ),
    [
      'totals of g and g',
      `insert into totals (a, b, total)
       select 'g:' || x.tag, 'g:' || y.tag, count(*)
       from tagged x join tagged y on y.item_hash = x.item_hash and x.tag collate "C" < y.tag collate "C"
       where ${heavy(`('g:' || x.tag)`)} and ${heavy(`('g:' || y.tag)`)} group by x.tag, y.tag`,
    ],
    ['leftovers', 'drop table listed, tagged, heavy_labels'],
  ];
}
