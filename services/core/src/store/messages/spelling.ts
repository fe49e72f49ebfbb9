import { type RawBuilder, sql } from 'kysely';

/** Addresses are kept in one spelling. Deployed nodes know no such thing: their clients expect their own back. */

/** The owner of the message `alias` as it is spelled there. */
export const spelledOwner = (alias: string): RawBuilder<string> => {
  const column = (name: string) => sql.ref(`${alias}.${name}`);
  return sql<string>`case ${column('form')} when 'network'
    then coalesce(${column('content')} ->> 'address', ${column('signed_sender')}, ${column('owner')})
    else ${column('owner')} end`;
};
