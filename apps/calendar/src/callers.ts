/** The services that may call each method, by the names in their certificates; the diagram in docs/architecture.md shows the same calls. */
export const callers = {
  TimeslotService: {
    createTimeslots: ['gateway'],
    listTimeslots: ['gateway'],
    updateTimeslot: ['gateway'],
    deleteTimeslot: ['gateway'],
  },
  AppointmentService: {
    createAppointment: ['gateway'],
    createSeries: ['gateway'],
    listAppointments: ['gateway'],
    cancelAppointment: ['gateway'],
    deleteAppointments: ['gateway'],
  },
  ParticipationService: {
    createParticipation: ['gateway'],
    updateParticipation: ['gateway'],
    getParticipationNotice: ['notification'],
  },
  CustomerRemovalService: {
    removeCustomer: ['customer'],
  },
};
