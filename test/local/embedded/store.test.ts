import * as embedded from '../../../local/embedded/index.ts';
import { storeTests } from './suite.ts';

storeTests(() => embedded);
