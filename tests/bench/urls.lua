-- wrk asks for the addresses in a file, one after the other; at the end it tells what it found out as JSON.
-- Arguments: the file, then headers as "Name: value".
local requests, at = {}, 0

function init(args)
    for number = 2, #args do
        local name, value = args[number]:match("^([^:]+): (.*)$")
        wrk.headers[name] = value
    end
    for path in io.lines(args[1]) do
        requests[#requests + 1] = wrk.format("GET", path)
    end
end

function request()
    at = at % #requests + 1
    return requests[at]
end

function done(summary, latency)
    local failed = summary.errors
    io.write(string.format(
        '\n{"requests": %d, "seconds": %f, "p50_ms": %f, "p99_ms": %f, "bytes": %d, "failed": %d}\n',
        summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
        summary.bytes, failed.connect + failed.read + failed.write + failed.status + failed.timeout
    ))
end
