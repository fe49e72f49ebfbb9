import { dataPlaneSuite } from './testing/suite.ts';
import { TsDataPlane } from './ts/plane.ts';

dataPlaneSuite('TypeScript data plane', (options) => new TsDataPlane(options));
