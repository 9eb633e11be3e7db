import type { LoadedCertificate, OverviewView } from '../../../../../handlers/documents/node.ts';
import { numberText } from '../../lib/format.ts';
import { Badge } from '../../parts/badge.tsx';
import type { Tone } from '../../parts/badge.tsx';
import { Card } from '../../parts/card.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { Time } from '../../parts/time.tsx';

/** Days before its end in which a certificate should be renewed, and in which it must. */
const SOON_DAYS = 30;
const LATE_DAYS = 7;

function toneOf(days: number): Tone {
  if (days < LATE_DAYS) return 'bad';
  return days < SOON_DAYS ? 'warn' : 'ok';
}

export function Certificates({
  certificates,
  isSecure,
}: {
  readonly certificates: readonly LoadedCertificate[];
  readonly isSecure: boolean;
}) {
  return (
    <Card title="Certificates">
      {certificates.length === 0 && (
        <p class="muted">{isSecure ? 'The node reports none.' : 'The node runs without TLS, so it has none.'}</p>
      )}
      <ul class="credentials">
        {certificates.map((certificate) => (
          <li key={certificate.thumbprint}>
            <div class="row spread">
              <strong class="truncate" title={certificate.subject}>
                {certificate.subject}
              </strong>
              <Badge tone={toneOf(certificate.daysLeft)}>
                {certificate.daysLeft < 0 ? 'expired' : `${numberText(certificate.daysLeft)}\u00a0d left`}
              </Badge>
            </div>
            <div class="small muted">
              {certificate.kind}, until <Time at={certificate.notAfter} show="absolute" />
            </div>
            <div class="small faint truncate" title={certificate.serial}>
              Serial {certificate.serial}
            </div>
            <div class="small faint truncate" title={certificate.thumbprint}>
              Thumbprint {certificate.thumbprint}
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}

const SOURCES = { 'built-in': 'Built in', key: 'From a key', none: 'None' } as const;

export function Licence({ licence: { source, expiresAt, refusal } }: { readonly licence: OverviewView['licence'] }) {
  return (
    <Card title="Licence">
      <Definitions
        items={[
          ['Source', <Badge tone={source === 'none' ? 'warn' : 'ok'}>{SOURCES[source]}</Badge>],
          expiresAt === null ? ['Expires', 'never'] : ['Expires', <Time at={expiresAt} show="exact" />],
          refusal === null ? null : ['Refused', refusal],
        ]}
      />
    </Card>
  );
}
