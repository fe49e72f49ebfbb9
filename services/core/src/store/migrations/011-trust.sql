-- Whom this node trusts, and for whom what it keeps was derived (docs/operating.md, "Whom a node trusts"): a setting that
-- changes, or a list that peers tell, takes effect on what is stored already.
create table trust (
  name    text collate "C" primary key,
  -- In force: addresses, in order.
  value   jsonb not null,
  source  text not null check (source in ('setting', 'peers', 'unset')),
  -- The peers that told it.
  told_by jsonb not null default '[]',
  -- What the stored state was derived for; null: not known, so every message of the kind is looked at.
  derived jsonb,
  -- How far the derivation for `value` is; null: not begun.
  place   jsonb
);
insert into trust (name, value, source, derived)
  select 'credit_publishers', to_jsonb(publishers), 'setting', to_jsonb(publishers) from credit_derivation;
insert into trust (name, value, source, derived)
  select 'scoring_publishers', v, 'setting', v
  from (select jsonb_agg(address order by address) as v from metrics_publishers) p where v is not null;
