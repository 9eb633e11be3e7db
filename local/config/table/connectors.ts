import { boolean, integer, list, path, size, text } from '../kinds.ts';
import { option, optional } from '../option.ts';

const secret = { isSensitive: true };

/** Options of sections 2.9 and 12: connectors and webhooks. */
export const connectors = {
  'Connectors:Enabled': option(boolean, true, 'Run connectors, and offer the paths below /connectors and /webhook'),
  'Connectors:DataProtection:Token': optional(text('TOKEN'), 'Secret under which secrets of connectors are sealed. Without one connectors with secrets are refused', secret),
  'Connectors:DataProtection:TokenFile': optional(path('FILE'), 'File that holds the token; it wins over the token itself'),
  'Connectors:DataProtection:PreviousTokens': option(list('TOKENS'), [], 'Tokens that were in use before, so that what they sealed can still be opened', secret),
  'Webhook:MaxBodySize': option(size({ min: 1, max: 4_194_304 }), 1_048_576, 'Largest body of a webhook call', { fallbackText: '1 MiB' }),
  'Webhook:ScriptTimeoutMs': option(integer('MS', 1, 60_000), 100, 'Processor time that a routing script may take for a call'),
};
