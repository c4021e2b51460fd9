package testjobs;

import java.util.Optional;

/** Some of the scenarios, by the names that {@code tests/golden/scenarios.py} knows them by. */
interface Scenarios {
    Optional<Scenario> named(String name, Place place);
}
