import { fileURLToPath } from 'node:url';

/** Where the migrations of the node's database are. */
export const MIGRATIONS = fileURLToPath(new URL('./migrations', import.meta.url));
