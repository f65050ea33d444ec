{{/*
An API token (chassis/src/token_format.rs): "cairn_", 40 characters of base62, and six more of the CRC-32 of these. Templates
have no CRC, so it is counted here bit by bit: a release then begins with a token that agents can use, without a command.
*/}}
{{- define "cairn.newToken" -}}
{{- $body := printf "cairn_%s" (.random | default (randAlphaNum 40)) }}
{{- $alphabet := "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" }}
{{- /* The places of 0xEDB88320, the reflected polynomial, lowest bit first. */}}
{{- $polynomial := list 5 8 9 15 19 20 21 23 24 26 27 29 30 31 }}
{{- $crc := list }}
{{- range until 32 }}{{ $crc = append $crc 1 }}{{ end }}
{{- range $place := until (len $body) }}
{{- $byte := index $body $place | int }}
{{- range until 8 }}
{{- $divides := ne (first $crc | int) (mod $byte 2 | int) }}
{{- $byte = div $byte 2 | int }}
{{- $crc = append (rest $crc) 0 }}
{{- if $divides }}
{{- $next := list }}
{{- range $bit, $value := $crc }}
{{- $next = append $next (ternary (sub 1 $value | int) $value (has $bit $polynomial)) }}
{{- end }}
{{- $crc = $next }}
{{- end }}
{{- end }}
{{- end }}
{{- $sum := 0 }}
{{- range $bit := reverse $crc }}{{ $sum = add (mul $sum 2) (sub 1 $bit) }}{{ end }}
{{- $digits := "" }}
{{- range until 6 }}
{{- $digits = printf "%c%s" (index $alphabet (mod $sum 62 | int)) $digits }}
{{- $sum = div $sum 62 }}
{{- end }}
{{- $body }}{{ $digits }}
{{- end }}
