import { readFile } from 'node:fs/promises';
import { AppError, createParser, parseTypedEvmAddress, type TokenPrice } from '@skerry/protocol';
import { type Static, Type } from '@skerry/protocol/type';

/** The file that says what is sold where (docs/credit.md). */

const strict = { additionalProperties: false } as const;
const Address = Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' });
const Name = Type.String({ minLength: 1, maxLength: 64 });

const TokenSettings = Type.Object(
  {
    symbol: Name,
    contract: Address,
    decimals: Type.Integer({ minimum: 0, maximum: 36 }),
    credits_per_token: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    bonus_basis_points: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
    start_block: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  },
  strict,
);

const SalesFile = Type.Object(
  {
    networks: Type.Array(
      Type.Object(
        {
          name: Type.String({ pattern: '^[a-z][a-z0-9-]{0,63}$' }),
          chain: Type.String({ pattern: '^[A-Z][A-Z0-9_]{0,15}$' }),
          chain_id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
          receiver: Address,
          tokens: Type.Array(TokenSettings, { minItems: 1, maxItems: 100 }),
        },
        strict,
      ),
      { maxItems: 64 },
    ),
  },
  strict,
);
type SalesFile = Static<typeof SalesFile>;

/** A token that is taken on a chain: transfers of it to `receiver` buy credits. */
export interface Sale {
  /** As the core node's indexer names it. */
  readonly network: string;
  readonly chain: string;
  readonly chainId: number;
  readonly receiver: string;
  readonly contract: string;
  readonly startBlock: number;
  readonly price: TokenPrice;
}

const parseFile = createParser(SalesFile, 'the sales file', 'INVALID_CONFIG');

export const placeOf = ({ network, contract }: Pick<Sale, 'network' | 'contract'>) =>
  `${network}/${contract}`;

/** Throws INVALID_CONFIG. */
export function parseSales(value: unknown): Sale[] {
  const file: SalesFile = parseFile(value);
  const sales = file.networks.flatMap((network) =>
    network.tokens.map((token) => ({
      network: network.name,
      chain: network.chain,
      chainId: network.chain_id,
      receiver: parseTypedEvmAddress(network.receiver),
      contract: parseTypedEvmAddress(token.contract),
      startBlock: token.start_block ?? 0,
      price: {
        symbol: token.symbol,
        decimals: token.decimals,
        creditsPerToken: BigInt(token.credits_per_token),
        bonusBasisPoints: token.bonus_basis_points ?? 0,
      },
    })),
  );
  if (new Set(sales.map(placeOf)).size !== sales.length)
    throw new AppError('INVALID_CONFIG', 'the sales file lists a token of a network twice');
  return sales;
}

/** @param path of the file; without one nothing is sold. Throws INVALID_CONFIG */
export async function loadSales(path: string | undefined): Promise<Sale[]> {
  if (path === undefined) return [];
  try {
    return parseSales(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    const { code = 'it is not JSON' } = cause as NodeJS.ErrnoException;
    throw new AppError('INVALID_CONFIG', `cannot read the sales file ${path} (${code})`, { cause });
  }
}
